"""What happened to others' preview URLs, one test for each incident. docs/security.md lists them."""

import string

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds import keys
from sandpod_crds.previews import MAX_LABEL, PreviewAddress, Site, short_name
from sandpod_gateway.preview_headers import COOKIE

from tests.support.gateway_harness import Harness
from tests.support.gateway_previews import cookie_of, echo, exposed, follow, login_link, with_another_token
from tests.support.gateway_visitors import JANES

LABEL = string.ascii_lowercase + string.digits
names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True).filter(
    lambda name: ".." not in name and ".-" not in name and "-." not in name
)
ports = st.integers(min_value=1024, max_value=65535).filter(lambda port: port != 3000)
versions = st.integers(min_value=1, max_value=2**31)


def token_of(name: str, port: int, version: int = 1) -> str:
    return keys.preview_token(key=b"k" * 32, sandbox_uid=f"uid-of-{name}", port=port, version=version)


async def refused_upgrade(gateway: Harness, host: str, **headers: str) -> int:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(
                f"ws://127.0.0.1:{gateway.gateway.http_port}/", headers={"Host": host, **headers}
            )
    return refused.value.status


@pytest.mark.parametrize("port", ["08080", "+8080", "-8080", "8080.0", "0x1f90", "8_080", "18080"])
async def test_a_port_is_written_in_one_way_only(gateway: Harness, port: str) -> None:
    """With a zero or a sign in front, a port was the same number to the proxy and another text to the check:
    nobody asked for a token.
    """
    host = await exposed(gateway)
    program = await gateway.raw_program()
    odd = host.replace("8080-", f"{port}-", 1)
    answer = await gateway.raw_preview(f"GET / HTTP/1.1\r\nHost: {odd}\r\n\r\n".encode())
    assert answer.split()[1] in (b"400", b"404")
    assert program.connections == 0


async def test_the_control_port_is_no_preview(gateway: Harness) -> None:
    """Whoever had a preview could ask it for the port of the sandbox's own API, and run commands there."""
    host = await exposed(gateway)
    runtime = await gateway.raw_runtime()
    control = await gateway.raw_program(port=3000)
    # Not even where a Sandbox says so, which its schema forbids.
    await gateway.expose("hello", {"port": 8080}, {"port": 3000})

    label = f"3000-hello-{token_of('hello', 3000)}"
    assert (await gateway.preview("GET", host=f"{label}.sandpod.localhost")).status == 404
    assert (await gateway.preview("GET", host=f"3000{host[4:]}")).status == 404
    assert (control.connections, bytes(runtime.received)) == (0, b"")


async def test_a_token_opens_one_port_of_one_sandbox(gateway: Harness) -> None:
    """The token of one port opened every other port on which something listened."""
    host = await exposed(gateway)
    program = await gateway.raw_program(port=8081)
    await gateway.expose("hello", {"port": 8080}, {"port": 8081})
    await gateway.expose("other", {"port": 8080})
    token = host.partition(".")[0][-20:]

    for label in ("8081-hello", "8082-hello", "8080-other"):
        assert (await gateway.preview("GET", host=f"{label}-{token}.sandpod.localhost")).status == 404
    assert program.connections == 0


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "//evil.example:80", "/\\evil.example", "/@evil.example"]
)
async def test_a_path_is_never_a_host(gateway: Harness, path: str) -> None:
    """A path with two slashes was joined to the upstream's address like a URL, and took its place."""
    host = await exposed(gateway)
    program = await gateway.raw_program()
    answer = await gateway.raw_preview(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200")
    assert program.head()[0] == f"GET {path} HTTP/1.1".encode()


async def test_upgrades_pass_the_same_gate(gateway: Harness) -> None:
    """Requests were checked and upgrades to WebSockets were not: they took another way through the proxy."""
    host = await exposed(gateway)
    program = await gateway.raw_program()
    assert await refused_upgrade(gateway, with_another_token(host)) == 404
    await gateway.expose("hello", {"port": 8080, "access": "Private"})
    assert await refused_upgrade(gateway, host) == 401
    assert program.connections == 0


async def test_a_cookie_counts_for_requests_of_its_own_pages_only(gateway: Harness) -> None:
    """A page elsewhere opened a WebSocket to somebody's private server: the browser added the cookie, and
    nobody looked at where the request came from.
    """
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    cookie = {"Cookie": await cookie_of(gateway)}
    neighbour = "http://8080-evil-aaaaaaaaaaaaaaaaaaaa.sandpod.localhost"

    for origin in (neighbour, "null", f"https://{host}", f"http://{host}:81", f"http://{host}.evil.example"):
        assert await refused_upgrade(gateway, host, Origin=origin, **cookie) == 403
        for method in ("GET", "POST"):
            answer = await gateway.preview(method, host=host, headers={**cookie, "Origin": origin})
            assert (answer.status, answer.json["code"]) == (403, "FOREIGN_ORIGIN")
    assert await refused_upgrade(gateway, host, **cookie) == 403
    assert (await gateway.preview("DELETE", host=host, headers=cookie)).status == 403
    image = {**cookie, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
    assert (await gateway.preview("GET", host=host, headers=image)).status == 403
    assert program.connections == 0

    own = {**cookie, "Origin": f"http://{host}"}
    assert (await gateway.preview("POST", host=host, headers=own)).status == 200
    link = {
        **cookie,
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    assert (await gateway.preview("GET", host=host, headers=link)).status == 200


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.example",
        "/\\evil.example",
        "/%09/evil.example",
        "https://evil.example/",
        "evil",
        "/%0d%0aX:y",
        "",
    ],
)
async def test_no_redirect_carries_a_credential_or_leaves_the_host(gateway: Harness, elsewhere: str) -> None:
    """A proxy put the visitor's session token into a URL that the attacker had chosen, and sent him on."""
    await exposed(gateway, access="Private")
    link = await login_link(gateway)

    answer = await follow(gateway, link, more=f"&next={elsewhere}")

    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert link.query["code"] not in answer.headers["Location"]


@given(name=names, port=ports, version=versions)
def test_a_token_survives_what_happens_to_host_names(name: str, port: int, version: int) -> None:
    """A token in mixed case was compared in lower case, because browsers write hosts so: much fewer had to be
    guessed. Some had a `_`, which no host may have.
    """
    token = token_of(name, port, version)
    assert len(token) == 20
    assert set(token) <= set(string.ascii_lowercase + "234567")
    # Five bits each: nothing is lost to letter case.
    assert token == token.lower()


@given(name=names, port=ports, version=versions)
def test_every_name_is_found_again(name: str, port: int, version: int) -> None:
    """Names in upper case or with hyphens were cut at the wrong place, and led to somebody else's sandbox."""
    address = PreviewAddress.of(port=port, sandbox=name, token=token_of(name, port, version))
    found = Site().address_in(Site().host(address).upper().lower())
    assert found == address
    assert found is not None
    assert (found.name, found.port) == (short_name(name), port)


@given(name=names, port=ports)
def test_no_label_is_longer_than_dns_allows(name: str, port: int) -> None:
    """URLs were given out that no resolver could resolve: a label has 63 characters at most."""
    label = PreviewAddress.of(port=port, sandbox=name, token=token_of(name, port)).label
    assert len(label) <= MAX_LABEL
    assert set(label) <= set(LABEL + "-")
    assert not label.startswith("-")
    assert not label.endswith("-")


async def test_who_has_no_token_wakes_nobody_and_learns_nothing(gateway: Harness) -> None:
    """Anybody who guessed a name could wake sandboxes, whose owners paid for it."""
    host = await exposed(gateway, phase="Asleep", ready=False, pod_ip="")
    wrong = with_another_token(host)

    known = await gateway.preview("GET", host=wrong)
    unknown = await gateway.preview("GET", host=wrong.replace("hello", "nobody"))
    malformed = await gateway.preview("GET", host="8080.sandpod.localhost")
    await gateway.expose("hello", {"port": 8080, "access": "Private"}, phase="Asleep", ready=False, pod_ip="")
    private = await gateway.preview("GET", host=wrong)

    for answer in (known, unknown, malformed, private):
        assert (answer.status, answer.body) == (404, known.body)
        assert {**answer.headers} | {"Date": ""} == {**known.headers} | {"Date": ""}
    assert (await gateway.preview("GET", host=host)).status == 401
    assert (gateway.api.wakes, gateway.api.gets, gateway.api.reviews) == ([], 0, [])


async def test_what_opens_the_gateway_does_not_reach_the_program(gateway: Harness) -> None:
    """User code was sent the visitor's bearer token and session cookie, and could use them as he could."""
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program(
        answer=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: mine=1; Path=/\r\n"
        b"Set-Cookie: =__Host-sandpod=forged; Secure; Path=/\r\n"
        b"Set-Cookie: all=1; dOmAiN = sandpod.localhost\r\nset-cookie: __host-SANDPOD=forged; Secure\r\n"
        b"X-Sandpod-Credential: x\r\n\r\n"
    )
    cookie = await cookie_of(gateway)

    await gateway.preview("GET", host=host, headers={"Authorization": f"Bearer {JANES}", "Cookie": "a=1"})
    answer = await gateway.preview("GET", host=host, headers={"Cookie": f"a=1; {cookie}; b=2"})

    received = bytes(program.received)
    assert JANES.encode() not in received
    assert COOKIE.encode() not in received
    assert b"Cookie: a=1; b=2\r\n" in received
    assert answer.headers.getall("Set-Cookie") == ["mine=1; Path=/"]
    assert "X-Sandpod-Credential" not in answer.headers


async def test_a_page_tells_nobody_its_address(gateway: Harness) -> None:
    """The secret host name stood in the `Referer` of requests to every site that a page had links to."""
    host = await exposed(gateway)
    await gateway.program(echo)
    assert (await gateway.preview("GET", host=host)).headers["Referrer-Policy"] == "no-referrer"
    refused = await gateway.preview("GET", host=with_another_token(host))
    assert refused.headers["Referrer-Policy"] == "no-referrer"


async def test_only_the_watched_pod_is_connected_to(gateway: Harness) -> None:
    """An address that came with the request was connected to, such as that of the cloud's metadata."""
    host = await exposed(gateway)
    program = await gateway.raw_program()
    dialled: list[str] = []
    address_of = gateway.address_of
    gateway.address_of = lambda ip: (dialled.append(ip), address_of(ip))[1]

    await gateway.preview(
        "GET",
        "/?url=http://169.254.169.254/",
        host=host,
        headers={
            "X-Forwarded-Host": "169.254.169.254",
            "X-Sandpod-Pod-IP": "127.0.0.1",
            "Forwarded": "host=a",
        },
    )

    assert (set(dialled), program.connections) == ({"10.0.0.1"}, 1)


SMUGGLED = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        f"Content-Length: {len(SMUGGLED)}\r\nTransfer-Encoding: chunked\r\n",
        f"Transfer-Encoding: chunked\r\nContent-Length: {len(SMUGGLED)}\r\n",
        f"Content-Length: 0\r\nContent-Length: {len(SMUGGLED)}\r\n",
        f"Content-Length: 0, {len(SMUGGLED)}\r\n",
        "Content-Length: +0\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        "X: y\r\n folded\r\n",
        "X: a\x00b\r\n",
        "Host: evil.example\r\n",
    ],
)
async def test_no_request_hides_in_another(gateway: Harness, head: str) -> None:
    """Two servers disagreed about where a request ends, so the rest of it became the next visitor's."""
    host = await exposed(gateway)
    program = await gateway.raw_program()
    request = f"POST / HTTP/1.1\r\nHost: {host}\r\n{head}\r\n{SMUGGLED}"
    answer = await gateway.raw_preview(request.encode("latin-1"))
    assert answer.split()[1] == b"400"
    assert answer.count(b"HTTP/1.") == 1
    assert b"smuggled" not in bytes(program.received)
