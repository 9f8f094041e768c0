"""Requests that two servers could read in two ways, at the previews' port: through the Python process alone,
and through HAProxy, which sends them to the program by itself. Each is refused, or is one request.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from sandpod_gateway import gateway

from tests.support.gateway_harness import Harness
from tests.support.haproxy import FOLDER, HAProxy
from tests.support.recorder import Recorder

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: HOST\r\n\r\n"
POST = b"POST /meant HTTP/1.1\r\nHost: HOST\r\n"
GET = b"GET /meant HTTP/1.1\r\nHost: HOST\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
# For who reads chunks the body ends at once; for who counts, it has a request in it.
ENDS = b"0\r\n\r\n"
COUNTED = b"Content-Length: 90\r\n"
Requests = list[tuple[bytes, bytes]]


def get(target: bytes, version: bytes = b"HTTP/1.1", method: bytes = b"GET") -> bytes:
    return method + b" " + target + b" " + version + b"\r\nHost: HOST\r\nConnection: close\r\n\r\n"


# None of these has one meaning: nothing of them may arrive.
REFUSED = {
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + HIDDEN,
    "a signed length": POST + b"Content-Length: +0\r\n\r\n" + HIDDEN,
    "a negative length": POST + b"Content-Length: -1\r\n\r\n" + HIDDEN,
    "a list of lengths": POST + b"Content-Length: 0, 44\r\n\r\n" + HIDDEN,
    "a hexadecimal length": POST + b"Content-Length: 0x0\r\n\r\n" + HIDDEN,
    "an empty length": POST + b"Content-Length:\r\n\r\n" + HIDDEN,
    "a length with a space in it": POST + b"Content-Length: 4 4\r\n\r\n" + HIDDEN,
    "a length without an end": POST + b"Content-Length: 99999999999999999999\r\n\r\n" + HIDDEN,
    "an unknown coding": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + ENDS + HIDDEN,
    "a quoted coding": POST + b'Transfer-Encoding: "chunked"\r\n\r\n' + ENDS + HIDDEN,
    "a coding after a vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + ENDS + HIDDEN,
    "a coding after chunks": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + ENDS + HIDDEN,
    "a coding before chunks": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + ENDS + HIDDEN,
    "chunks twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + ENDS + HIDDEN,
    "two codings": POST + b"Transfer-Encoding: identity\r\n" + CHUNKED + b"\r\n" + ENDS + HIDDEN,
    "an empty coding": POST + COUNTED + b"Transfer-Encoding:\r\n\r\n" + ENDS + HIDDEN,
    "a space before the colon": POST + COUNTED + b"Transfer-Encoding : chunked\r\n\r\n" + ENDS + HIDDEN,
    "a space before the name": POST + COUNTED + b" Transfer-Encoding: chunked\r\n\r\n" + ENDS + HIDDEN,
    "a coding behind a carriage return": POST + COUNTED + b"X: a\r" + CHUNKED + b"\r\n" + ENDS + HIDDEN,
    "a coding behind NUL": POST + COUNTED + b"X: a\0\r\n" + CHUNKED + b"\r\n" + ENDS + HIDDEN,
    "chunks for HTTP/1.0": b"POST /meant HTTP/1.0\r\nHost: HOST\r\n" + CHUNKED + b"\r\n" + ENDS + HIDDEN,
    "a chunk's size that wraps": POST + CHUNKED + b"\r\n10000000000000000\r\n" + ENDS + HIDDEN,
    "a chunk's size with a sign": POST + CHUNKED + b"\r\n+0\r\n\r\n" + HIDDEN,
    "a chunk's size with 0x": POST + CHUNKED + b"\r\n0x0\r\n\r\n" + HIDDEN,
    "a chunk that ends too late": POST + CHUNKED + b"\r\n1\r\nabc\r\n" + ENDS + HIDDEN,
    "NUL in a value": GET + b"X: a\0b\r\n\r\n",
    "NUL in a name": GET + b"X\0: a\r\n\r\n",
    "NUL in the target": get(b"/meant\0"),
    "a header without a colon": GET + b"GET /hidden HTTP/1.1\r\n\r\n",
    "a header without a name": GET + b": a\r\n\r\n",
    "two hosts": GET + b"Host: evil.example\r\n\r\n",
    "a host with a user": b"GET /meant HTTP/1.1\r\nHost: evil@HOST\r\n\r\n",
    "a host with a path": b"GET /meant HTTP/1.1\r\nHost: HOST/x\r\n\r\n",
    "no host": b"GET /meant HTTP/1.1\r\n\r\n",
    "HTTP/0.9": b"GET /meant\r\n\r\n" + HIDDEN,
    "HTTP/2 by its name": get(b"/meant", b"HTTP/2.0"),
    "a version that is none": get(b"/meant", b"HTTP/9.9"),
    "a version in small letters": get(b"/meant", b"http/1.1"),
    "HTTP/2 without an upgrade": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "an absolute target": get(b"http://HOST/meant"),
    "an absolute target elsewhere": get(b"http://127.0.0.1:3000/meant"),
    "an authority": get(b"127.0.0.1:3000", method=b"CONNECT"),
    "an authority without a tunnel": get(b"127.0.0.1:3000"),
    "a tunnel to a path": get(b"/meant", method=b"CONNECT"),
    "an asterisk": get(b"*", method=b"OPTIONS"),
    "a relative target": get(b"meant"),
    "no target": get(b""),
    "a space in the target": get(b"/meant /hidden"),
    "a fragment": get(b"/meant#/hidden"),
    "a byte that is no ASCII": get(b"/meant\xe9"),
    "a method that is no token": get(b"/meant", method=b"G(T"),
    "a trace": get(b"/meant", method=b"TRACE"),
    "a line that is too long": get(b"/meant?" + b"x" * 70_000),
    "a header that is too long": GET + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    "headers that are too many": GET + b"X: y\r\n" * 20_000 + b"\r\n",
}
# Those that a careful server may take, and what they then are; HTTP says that chunks win over a length.
ONE: dict[str, tuple[bytes, Requests]] = {
    "a length beside chunks": (POST + COUNTED + CHUNKED + b"\r\n" + ENDS + HIDDEN, [(b"POST /meant", b"")]),
    "chunks beside a length": (POST + CHUNKED + COUNTED + b"\r\n" + ENDS + HIDDEN, [(b"POST /meant", b"")]),
    "the same length twice": (POST + b"Content-Length: 2\r\n" * 2 + b"\r\nok", [(b"POST /meant", b"ok")]),
    "another header than it looks": (
        POST + b"Content-Length: 2\r\nTransfer_Encoding: chunked\r\n\r\nok",
        [(b"POST /meant", b"ok")],
    ),
    "a method that nobody knows": (get(b"/meant", method=b"FROB"), [(b"FROB /meant", b"")]),
    "an expectation that nobody knows": (GET + b"Expect: 200-maybe\r\n\r\n", [(b"GET /meant", b"")]),
    "trailers": (
        POST + CHUNKED + b"\r\n2\r\nok\r\n0\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n",
        [(b"POST /meant", b"ok")],
    ),
    "HTTP/1.0 that stays": (
        b"GET /meant HTTP/1.0\r\nHost: HOST\r\nConnection: keep-alive\r\n\r\n",
        [(b"GET /meant", b"")],
    ),
    "an upgrade to HTTP/2": (
        GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
        [(b"GET /meant", b"")],
    ),
    "extensions of chunks": (POST + CHUNKED + b"\r\n2;a=b\r\nok\r\n" + ENDS, [(b"POST /meant", b"ok")]),
}
# What HTTP lets a server mend, as HAProxy does before anybody behind it sees it. A line feed ends a line, and
# what stands behind it is then a request of its own, to be judged for itself.
MENDED: dict[str, tuple[bytes, Requests]] = {
    "a folded coding": (
        POST + COUNTED + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + ENDS + HIDDEN,
        [(b"POST /meant", b"")],
    ),
    "a coding behind a line feed": (
        POST + COUNTED + b"X: a\nTransfer-Encoding: chunked\r\n\r\n" + ENDS + HIDDEN,
        [(b"POST /meant", b"")],
    ),
    "a line feed in an extension": (
        POST + CHUNKED + b"\r\n1;\nx\r\n" + ENDS + HIDDEN,
        [(b"POST /meant", b"x"), (b"GET /hidden", b"")],
    ),
    "chunks with line feeds alone": (
        POST + CHUNKED + b"\r\n0\n\n" + HIDDEN,
        [(b"POST /meant", b""), (b"GET /hidden", b"")],
    ),
    "bare line feeds": (
        b"GET /meant HTTP/1.1\nHost: HOST\n\n" + HIDDEN,
        [(b"GET /meant", b""), (b"GET /hidden", b"")],
    ),
    "a folded header": (GET + b"X: a\r\n GET /hidden HTTP/1.1\r\n\r\n", [(b"GET /meant", b"")]),
}
# As they are, byte by byte.
TARGETS = (
    b"//evil.example/meant",
    b"/../../meant",
    b"/a/%2e%2e/meant",
    b"/%2f..%2fmeant",
    b"/a\\..\\meant",
    b"/meant%00%0d%0aX:%20y",
    b"/meant?u=http://evil.example/..%2f&x",
    b"/%",
)


@dataclass
class Door:
    send: Callable[[bytes], Awaitable[bytes]]
    program: Recorder
    host: bytes
    mends: bool

    async def probe(self, data: bytes) -> tuple[bytes, Requests]:
        """What is answered, and what has arrived."""
        answer = await self.send(data.replace(b"HOST", self.host))
        return answer, self.program.take()


@pytest_asyncio.fixture
async def program(built: Harness) -> AsyncIterator[Recorder]:
    program = Recorder()
    async with await program.listen():
        built.programs["10.0.0.1", 8080] = program.port
        yield program
        await program.close()


@pytest_asyncio.fixture(params=["Python", "HAProxy"])
async def door(
    built: Harness, program: Recorder, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Door]:
    # At the end there is nothing left to hand over.
    monkeypatch.setattr(gateway, "HAND_OVER_SECONDS", 0)
    with tempfile.TemporaryDirectory(prefix="sandpod-") as folder:
        haproxy = HAProxy(Path(folder)) if request.param == "HAProxy" else None
        try:
            if haproxy is None:
                await built.start()
            else:
                await haproxy.listening()
                await built.start(sockets=folder, haproxy_map=str(FOLDER / "hosts.map"))
            await built.raw_runtime()
            await built.expose("hello", {"port": 8080})
            host = built.preview_host("hello")
            if haproxy is not None:
                await _carried_by(haproxy, host)
            port = haproxy.port if haproxy else built.gateway.http_port or 0
            program.take()
            yield Door(lambda data: _sent(data, port=port), program, host.encode(), mends=haproxy is not None)
        finally:
            if haproxy is not None:
                haproxy.kill()


async def _carried_by(haproxy: HAProxy, host: str) -> None:
    """Until HAProxy sends requests to the program by itself."""
    async with asyncio.timeout(20):
        while not (await haproxy.admin.answered())["2xx"]:
            await haproxy.get(host=host)


async def _sent(data: bytes, *, port: int) -> bytes:
    """What comes back until the connection ends, or falls silent after an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        writer.write(data)
        while data := await asyncio.wait_for(reader.read(65_536), 0.1 if answer else 5):
            answer += data
    writer.close()
    return answer


def status(answer: bytes) -> int:
    """Of the first answer; 0 when there was none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0


async def test_request_smuggling_through_a_permissive_parser_is_refused_for_previews(door: Door) -> None:
    wrong: dict[str, object] = {}
    mended = {} if door.mends else {name: data for name, (data, _) in MENDED.items()}
    for name, data in {**REFUSED, **mended}.items():
        answer, arrived = await door.probe(data)
        if arrived or not (400 <= status(answer) < 500 or status(answer) in (501, 505)):
            wrong[name] = answer[:40], arrived

    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())
    assert (await door.probe(get(b"/after")))[1] == [(b"GET /after", b"")]


async def test_what_has_one_meaning_only_by_the_letter_is_refused_or_has_that_meaning(door: Door) -> None:
    wrong: dict[str, object] = {}
    for name, (data, meant) in {**ONE, **(MENDED if door.mends else {})}.items():
        answer, arrived = await door.probe(data)
        refused = not arrived and 400 <= status(answer) < 500
        if not refused and (arrived != meant or status(answer) != 200):
            wrong[name] = answer[:40], arrived

    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


async def test_a_target_reaches_the_program_byte_by_byte(door: Door) -> None:
    for target in TARGETS:
        assert (await door.probe(get(target)))[1] == [(b"GET " + target, b"")]


async def test_requests_behind_one_another_are_each_a_request_of_their_own(door: Door) -> None:
    wrong = HIDDEN.replace(b"HOST", b"8080-hello-aaaaaaaaaaaaaaaaaaaa.sandpod.localhost")

    answer, arrived = await door.probe(POST + b"Content-Length: 2\r\n\r\nok" + wrong + get(b"/last"))

    assert arrived == [(b"POST /meant", b"ok"), (b"GET /last", b"")]
    assert [answer.count(b"HTTP/1.1 %d " % code) for code in (200, 404)] == [2, 1]


async def test_leave_to_send_a_body_is_given_once_and_only_to_who_waits_for_it(door: Door) -> None:
    answer, arrived = await door.probe(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok")

    assert arrived == [(b"POST /meant", b"ok")]
    assert answer.count(b"HTTP/1.1 100 Continue\r\n\r\n") <= 1
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 1


async def test_no_answer_tells_what_it_was_made_by(door: Door) -> None:
    for data in (get(b"/healthz").replace(b"HOST", b"elsewhere"), get(b"/a b"), b"\x16\x03\x01\r\n\r\n"):
        answer = (await door.probe(data))[0].lower()

        assert answer.startswith(b"http/1.")
        assert not [word for word in (b"server:", b"aiohttp", b"python", b"haproxy", b"^") if word in answer]
