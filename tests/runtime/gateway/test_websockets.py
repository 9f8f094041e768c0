"""WebSockets through the gateway: pipes in both directions."""

import asyncio

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from tests.support.gateway_harness import Harness, proxy_path, until

MEGABYTE = 1 << 20


async def test_a_websocket_passes_both_ways(hello: Harness) -> None:
    closed = asyncio.Event()

    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        terminal = web.WebSocketResponse()
        await terminal.prepare(request)
        await terminal.send_str("ready")
        async for message in terminal:
            if message.type is WSMsgType.TEXT:
                await terminal.send_str(message.data.upper())
            else:
                await terminal.send_bytes(message.data)
        closed.set()
        return terminal

    await hello.runtime(echo)
    big = bytes(range(256)) * 8192

    async with hello.websocket(proxy_path("hello", "/ws/pty?cols=80")) as terminal:
        assert await terminal.receive_str() == "ready"
        await terminal.send_str("hi")
        assert await terminal.receive_str() == "HI"
        await terminal.send_bytes(big)
        assert await terminal.receive_bytes() == big
    await asyncio.wait_for(closed.wait(), 5)

    await until(lambda: len(hello.audit_lines()) == 1)
    line = hello.audit_lines()[0]
    assert (line["status"], line["verb"], line["subresource"]) == (101, "create", "terminals")


async def test_a_runtime_that_closes_a_websocket_closes_it_for_the_client(hello: Harness) -> None:
    async def leave(request: web.BaseRequest) -> web.StreamResponse:
        terminal = web.WebSocketResponse()
        await terminal.prepare(request)
        await terminal.close(code=1008, message=b"no such terminal")
        return terminal

    await hello.runtime(leave)

    async with hello.websocket(proxy_path("hello", "/ws/terminal")) as terminal:
        message = await terminal.receive()
        assert (message.type, message.data) == (WSMsgType.CLOSE, 1008)


async def test_a_websocket_that_the_runtime_declines_is_an_ordinary_answer(hello: Harness) -> None:
    await hello.raw_runtime(answer=b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno")

    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with hello.websocket(proxy_path("hello", "/ws/terminal")):
            pass

    assert caught.value.status == 400


async def test_a_slow_reader_of_a_websocket_stops_the_runtimes_writing(hello: Harness) -> None:
    sent = 0

    async def flood(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        terminal = web.WebSocketResponse()
        await terminal.prepare(request)
        for _ in range(100):
            await terminal.send_bytes(b"x" * MEGABYTE)
            sent += 1
        await terminal.close()
        return terminal

    await hello.runtime(flood)
    async with hello.websocket(proxy_path("hello", "/ws/pty")) as terminal:
        await terminal.receive()
        standing = -1
        while standing != sent:
            standing = sent
            await asyncio.sleep(0.2)
        assert sent < 50
        received = 1
        while (await terminal.receive()).type is WSMsgType.BINARY:
            received += 1
    assert received == 100
