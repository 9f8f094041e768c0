"""Requests as an attacker writes them, byte by byte, and the bytes that a runtime got of them."""

import asyncio
import json

import pytest

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import Harness, proxy_path
from tests.support.gateway_raw_runtime import LEASE, PROVE, RawRuntime, lease_answer

PATH = proxy_path("hello", "/api/execute")


@pytest.fixture
async def runtime(gateway: Harness) -> RawRuntime:
    await gateway.api.put(sandbox("hello"))
    return await gateway.raw_runtime()


def request(line: str, *headers: str, body: str = "") -> bytes:
    head = "\r\n".join((line, "Host: x", "X-Remote-User: jane", *headers))
    return f"{head}\r\n\r\n{body}".encode("latin-1")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            request(
                f"POST {PATH} HTTP/1.1", "Content-Length: 5", "Transfer-Encoding: chunked", body="0\r\n\r\nG"
            ),
            id="a length beside chunks",
        ),
        pytest.param(
            request(
                f"POST {PATH} HTTP/1.1", "Transfer-Encoding: chunked", "Content-Length: 5", body="0\r\n\r\nG"
            ),
            id="chunks beside a length",
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Content-Length: 1", "Content-Length: 2", body="xy"),
            id="two lengths",
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Content-Length: 1", "Content-Length: 1", body="x"),
            id="the same length twice",
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Content-Length: 1, 1", body="x"), id="a list of lengths"
        ),
        pytest.param(request(f"POST {PATH} HTTP/1.1", "Content-Length: +1", body="x"), id="a signed length"),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Content-Length: -1", body="x"), id="a negative length"
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Content-Length: 0x1", body="x"), id="a hexadecimal length"
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Transfer-Encoding: xchunked", body="0\r\n\r\n"),
            id="an unknown coding",
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Transfer-Encoding: gzip, chunked", body="0\r\n\r\n"),
            id="a coding before chunked",
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Transfer-Encoding: chunked, identity", body="0\r\n\r\n"),
            id="a coding after chunked",
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Transfer-Encoding : chunked", body="0\r\n\r\n"),
            id="a space before the colon",
        ),
        pytest.param(
            request(f"POST {PATH} HTTP/1.1", "Transfer-Encoding:\x0bchunked", body="0\r\n\r\n"),
            id="a vertical tab",
        ),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "X-A: b", " folded"), id="a folded header"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "X-A: b\x00c"), id="NUL in a header"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "X-A: b\rc"), id="a bare CR in a header"),
        pytest.param(request(f"GET {PATH}\x00 HTTP/1.1"), id="NUL in the path"),
        pytest.param(request(f"GET {PATH}#x HTTP/1.1"), id="a fragment"),
        pytest.param(request(f"GET {PATH}\xe9 HTTP/1.1"), id="a byte in the path that is no ASCII"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "X-A: b").replace(b"\r\n", b"\n"), id="bare line feeds"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "X-A: b\nX-B: c"), id="one bare line feed"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "X-A"), id="a header without a colon"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "X A: b"), id="a space in a header's name"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", "Host: y"), id="two hosts"),
        pytest.param(f"GET {PATH} HTTP/1.1\r\nX-Remote-User: jane\r\n\r\n".encode(), id="no host"),
        pytest.param(request(f"GET {PATH} HTTP/9.9"), id="an unknown version"),
        pytest.param(request(f"FROB {PATH} HTTP/1.1"), id="an unknown method"),
        pytest.param(request(f"GET http://10.0.0.1:3000{PATH} HTTP/1.1"), id="an absolute target"),
        pytest.param(request(f"GET http://[::1{PATH} HTTP/1.1"), id="an absolute target that is no URL"),
        pytest.param(request(f"GET //[bad{PATH} HTTP/1.1"), id="a target with half a host"),
        pytest.param(request("CONNECT 10.0.0.1:3000 HTTP/1.1"), id="a tunnel elsewhere"),
        pytest.param(request(f"GET {proxy_path('hello', '/../x')} HTTP/1.1"), id="a path that climbs"),
        pytest.param(
            request(f"GET {proxy_path('hello', '/a/%2e%2E/x')} HTTP/1.1"), id="an encoded path that climbs"
        ),
        pytest.param(
            request(f"GET {proxy_path('hello', '/a/..%2fx')} HTTP/1.1"), id="a path that climbs by %2f"
        ),
        pytest.param(request(f"GET {PATH}?{'x' * 20000} HTTP/1.1"), id="a line that is too long"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", f"X-A: {'x' * 20000}"), id="a header that is too long"),
        pytest.param(request(f"GET {PATH} HTTP/1.1", *["X-A: b"] * 1100), id="too many headers"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS inside TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
    ],
)
async def test_request_smuggling_through_a_permissive_parser_is_refused(
    gateway: Harness, runtime: RawRuntime, data: bytes
) -> None:
    answer = await gateway.raw(data)

    status = int(answer.split(b" ")[1])
    assert status in (400, 404, 405), answer
    assert runtime.connections == 0
    # And the gateway is still there.
    assert (await gateway.request("POST", PATH)).status == 200


async def test_a_path_that_begins_with_two_slashes_is_only_a_path(
    gateway: Harness, runtime: RawRuntime
) -> None:
    """`//evil.example` as a relative URL would replace the upstream's host."""
    answer = await gateway.request("GET", proxy_path("hello", "//evil.example/x?y=//z"))

    assert answer.status == 200
    head = runtime.head()
    assert head[0] == b"GET //evil.example/x?y=//z HTTP/1.1"
    assert head[1] == f"Host: 127.0.0.1:{runtime.port}".encode()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api/process/a%2Fb/logs",
        "/api/process/%61%2e",
        "/a%20b%00%0a%ff",
        "/a;b=c/d,e@f:g",
        "/api/execute?",
        "/api/execute?a=%2F&a=b+c&&=&%zz",
        "/api/execute?url=http://10.0.0.1/../..",
        "/%",
        "/a\\b",
        '/"<>^`{|}',
    ],
)
async def test_a_path_reaches_the_runtime_byte_by_byte(
    gateway: Harness, runtime: RawRuntime, path: str
) -> None:
    answer = await gateway.raw(request(f"GET {proxy_path('hello', path)} HTTP/1.1", "Connection: close"))

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert runtime.head()[0] == f"GET {path} HTTP/1.1".encode()


async def test_nothing_after_a_chunked_body_is_taken_for_part_of_it(
    gateway: Harness, runtime: RawRuntime
) -> None:
    """A second request in the same packet is a request of its own, with its own check."""
    first = request(f"POST {PATH} HTTP/1.1", "Content-Length: 2", body="ok")
    second = request(f"GET {proxy_path('hello', '/api/bind')} HTTP/1.1", "Connection: close")

    answer = await gateway.raw(first + second)

    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert answer.count(b"HTTP/1.1 404 Not Found") == 1
    assert b"/api/bind" not in runtime.received


async def test_a_body_with_a_broken_chunk_is_never_a_whole_one(gateway: Harness) -> None:
    await gateway.api.put(sandbox("hello"))
    received = asyncio.Event()
    body = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(PROVE):
            nonce = head[len(PROVE) :].partition(b" ")[0].decode()
            writer.write(lease_answer(body=json.dumps({"proof": gateway.proof(nonce)}).encode()))
            head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(LEASE):
            await reader.readuntil(b"}")
            writer.write(lease_answer())
            await reader.readuntil(b"\r\n\r\n")
        while data := await reader.read(100):
            body.extend(data)
            received.set()
        writer.close()

    listening = await asyncio.start_server(listen, "127.0.0.1", 0)
    gateway.targets["10.0.0.1"] = listening.sockets[0].getsockname()[1]
    reader, writer = await gateway.connect()
    writer.write(request(f"POST {PATH} HTTP/1.1", "Transfer-Encoding: chunked", body="4\r\nhalf\r\n"))
    await asyncio.wait_for(received.wait(), 5)

    writer.write(b"nonsense\r\n0\r\n\r\n")

    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    listening.close()
    assert answer.startswith(b"HTTP/1.1 400")
    assert bytes(body) == b"4\r\nhalf\r\n"
