"""How long a connection may take, and whose place it takes, by the certificate that it shows."""

import asyncio
import socket

import pytest
from aiohttp import web
from sandpod_gateway import listener
from sandpod_gateway.listener import Listener

from tests.support.gateway_harness import PREFIX, Harness

HALF = f"GET {PREFIX} HTTP/1.1\r\nHost: x\r\nX-Remote-User: jane\r\n".encode()
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def stranger(built: Harness) -> Streams:
    port = built.gateway.https_port
    return await asyncio.open_connection("127.0.0.1", port, ssl=built.stranger_context())


async def is_cut_off(reader: asyncio.StreamReader, *, seconds: float = 5) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), seconds) == b""
    except ConnectionError:
        return True


async def test_half_a_request_without_a_certificate_is_cut_off_and_with_one_waited_for(
    gateway: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "STRANGER_SECONDS", 0.3)
    known, known_writer = await gateway.connect()
    known_writer.write(HALF)
    unknown, unknown_writer = await stranger(gateway)
    unknown_writer.write(HALF)

    assert await is_cut_off(unknown)

    known_writer.write(b"\r\n")
    assert (await known.readline()).startswith(b"HTTP/1.1 200")
    for writer in (known_writer, unknown_writer):
        writer.close()


async def test_strangers_take_no_place_of_the_api_servers(
    built: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "STRANGERS", 3)
    await built.start(max_connections=1)
    held = [await stranger(built) for _ in range(3)]

    one_more, writer = await stranger(built)
    assert await is_cut_off(one_more, seconds=2)
    writer.close()

    assert (await built.request("GET", PREFIX)).status == 200
    # Those that are within their number are told what this port is for.
    held[0][1].write(HALF + b"\r\n")
    assert (await held[0][0].readline()).startswith(b"HTTP/1.1 401")
    for _, writer in held:
        writer.close()


async def test_a_plain_port_has_no_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "STRANGERS", 0)
    options: dict[str, int] = {}

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        accepted = request.transport.get_extra_info("socket")
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"):
            options[name] = accepted.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
        options["SO_KEEPALIVE"] = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        return web.Response(text="ok")

    server = Listener(answer, max_connections=1)
    await server.listen(port=0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")

    assert (await reader.readline()).startswith(b"HTTP/1.1 200")

    # And whoever is on the other end of it is found out when their node dies.
    assert options == {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "SO_KEEPALIVE": 1}
    writer.close()
    await server.close()
