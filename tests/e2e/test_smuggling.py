"""Requests that two servers could read in two ways, through two of them: ingress controller and gateway. The
program in the sandbox records what it got.
"""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.ingress import Ingress, Preview
from tests.support.preview_boxes import PORT, opened, program_in
from tests.support.sandboxes import Sandboxes

OK = b"HTTP/1.1 200 OK\r\n"
HIDDEN = b"GET /PROBE-hidden HTTP/1.1\r\nHost: HOST\r\n\r\n"
POST = b"POST /PROBE HTTP/1.1\r\nHost: HOST\r\n"
GET = b"GET /PROBE HTTP/1.1\r\nHost: HOST\r\n"
# A body that ends at once for who reads chunks, and holds a whole request for who counts.
CHUNKS = b"0\r\n\r\n" + HIDDEN
LENGTH = b"Content-Length: %d\r\n"


def chunked(spelling: bytes) -> bytes:
    return POST + b"Content-Length: COUNT\r\n" + spelling + b"\r\n\r\n" + CHUNKS


def filled(name: str, probe: bytes, host: str) -> bytes:
    probe = probe.replace(b"PROBE", b"probe-%b-" % name.encode()).replace(b"HOST", host.encode())
    return probe.replace(b"COUNT", str(len(probe.partition(b"\r\n\r\n")[2])).encode())


PROBES = {
    "length-and-chunks": chunked(b"Transfer-Encoding: chunked"),
    "chunks-and-length": POST + b"Transfer-Encoding: chunked\r\n" + LENGTH % 4 + b"\r\n" + b"5c\r\n" + CHUNKS,
    "space-before-colon": chunked(b"Transfer-Encoding : chunked"),
    "tab-before-value": chunked(b"Transfer-Encoding:\tchunked"),
    "vertical-tab": chunked(b"Transfer-Encoding: \x0bchunked"),
    "two-codings": chunked(b"Transfer-Encoding: chunked, identity"),
    "two-headers": chunked(b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked"),
    "quoted-coding": chunked(b'Transfer-Encoding: "chunked"'),
    "underscore": chunked(b"Transfer_Encoding: chunked"),
    "folded-coding": chunked(b"Transfer-Encoding:\r\n chunked"),
    "coding-after-nul": chunked(b"X: a\0b\r\nTransfer-Encoding: chunked"),
    "two-lengths": POST + LENGTH % 0 + LENGTH % len(HIDDEN) + b"\r\n" + HIDDEN,
    "length-with-plus": POST + b"Content-Length: +0\r\n\r\n" + HIDDEN,
    "length-with-comma": POST + b"Content-Length: 0, 44\r\n\r\n" + HIDDEN,
    "negative-length": POST + b"Content-Length: -1\r\n\r\n" + HIDDEN,
    "length-in-hexadecimal": POST + b"Content-Length: 0x10\r\n\r\n" + HIDDEN,
    "huge-length": POST + b"Content-Length: 99999999999999999999\r\n\r\n" + HIDDEN,
    "chunk-that-wraps": POST + b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n" + CHUNKS,
    "chunk-with-bare-lf": POST + b"Transfer-Encoding: chunked\r\n\r\n1;\nx\r\n" + CHUNKS,
    "bare-lf": b"GET /PROBE HTTP/1.1\nHost: HOST\nX: y\n\n" + HIDDEN,
    "bare-cr": GET + b"X: a\rGET /PROBE-hidden HTTP/1.1\r\n\r\n",
    "folded-header": GET + b"X: a\r\n GET /PROBE-hidden HTTP/1.1\r\n\r\n",
    "nul-in-a-value": GET + b"X: a\0b\r\n\r\n",
    "nul-in-the-target": b"GET /PROBE\0 HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "no-colon": GET + b"GET /PROBE-hidden HTTP/1.1\r\n\r\n",
    "two-hosts": GET + b"Host: evil.example\r\n\r\n",
    "no-host": b"GET /PROBE HTTP/1.1\r\n\r\n",
    "oversized-line": b"GET /PROBE?" + b"x" * 2_000_000 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "oversized-head": GET + b"X: " + b"x" * 2_000_000 + b"\r\n\r\n",
    "http-0.9": b"GET /PROBE\r\n\r\n" + HIDDEN,
    "upgrade-to-http-2": GET
    + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n"
    + HIDDEN,
    "upgrade-that-is-refused": GET
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 7\r\n\r\n"
    + HIDDEN,
    "tunnel": b"CONNECT HOST:80 HTTP/1.1\r\nHost: HOST\r\n\r\n" + HIDDEN,
    "trailers": POST + b"Transfer-Encoding: chunked\r\nTrailer: Host\r\n\r\n0\r\nHost: evil.example\r\n\r\n",
}
# Each is one whole request; what it asks for, if it arrives, is this very text.
TARGETS = (
    "//evil.example/PROBE",
    "/..//PROBE",
    "/a/%2e%2e/PROBE",
    "/%2f..%2fPROBE",
    "/a%2fb/PROBE",
    "/PROBE?u=http://evil.example/..%2f",
    "/PROBE;a=b",
    "/%5c..%5cPROBE",
    "/PROBE%00",
    "/PROBE%0d%0aX:%20y",
)


@pytest.fixture(scope="module")
def preview(shared_sandbox: Sandboxes, api: httpx.Client, ingress: Ingress) -> Preview:
    box = shared_sandbox("box", keepAlive=True, ports=[{"port": PORT}]).wait()
    program_in(api, box)
    return opened(ingress, box)


def throw(preview: Preview, probes: dict[str, bytes]) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    """What was answered to each, and the heads that the program got of each."""
    with preview.client() as client:
        client.get("/heads").raise_for_status()
        with ThreadPoolExecutor(16) as threads:
            thrown = (filled(name, probe, preview.host) for name, probe in probes.items())
            answers = dict(zip(probes, threads.map(preview.raw, thrown), strict=True))
        # Whoever comes next gets what is theirs.
        for number in range(8):
            assert client.get(f"/after-{number}").json()["head"].startswith(f"GET /after-{number} ")
        heads: list[str] = client.get("/heads").json()
    return answers, {name: [head for head in heads if f"probe-{name}-" in head] for name in probes}


def hosts(head: str) -> list[str]:
    return [line[5:].strip() for line in head.split("\r\n") if line.lower().startswith("host:")]


def may_arrive(found: list[str], *, answered: int) -> int:
    """What the program took for a request was one to the ingress controller, too, and has an answer. Only the
    head in front may have come without one, before what follows it turned out to be no body.
    """
    return answered if any("hidden" in head.split(" ")[1] for head in found) else max(1, answered)


def way(head: str) -> str:
    """On which it came through the gateway: HAProxy writes names of headers in small letters."""
    return "HAProxy" if "\r\nx-forwarded-for:" in head else "Python"


def test_no_request_is_smuggled_past_the_ingress_and_the_gateway(preview: Preview) -> None:
    answers, heads = throw(preview, PROBES)
    smuggled = {
        name: (answers[name][:300], [(way(head), head) for head in found])
        for name, found in heads.items()
        if len(found) > may_arrive(found, answered=answers[name].count(OK))
    }
    assert smuggled == {}
    # Some are refused, of the others some by each way: or nothing would have been tried.
    assert {way(head) for found in heads.values() for head in found} == {"HAProxy", "Python"}
    for found in heads.values():
        for head in found:
            assert hosts(head) == [preview.host], head
            assert "\0" not in head
            assert "\n" not in head.replace("\r\n", "")
            assert head.lower().count("content-length") + head.lower().count("transfer-encoding:") < 2, head


def test_a_target_is_only_ever_a_path(preview: Preview) -> None:
    probes = {
        f"target-{number}": f"GET {target} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n".encode()
        for number, target in enumerate(TARGETS)
    }
    probes["absolute"] = b"GET http://HOST/PROBE HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    probes["elsewhere"] = b"GET http://evil.example/PROBE HTTP/1.1\r\nHost: HOST\r\n\r\n"
    answers, heads = throw(preview, probes)
    assert heads["elsewhere"] == []
    assert any(heads.values())
    for name, found in heads.items():
        assert len(found) == answers[name].count(OK), (name, answers[name][:300], found)
        for head in found:
            target = head.split(" ")[1]
            assert target.startswith("/"), head
            assert hosts(head) == [preview.host], head
            assert "\nX: y" not in head
