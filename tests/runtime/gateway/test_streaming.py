"""How bodies travel: both ways at once, as they come, and no longer than both sides want."""

import asyncio
import hashlib
import io
import resource
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.support.gateway_harness import Harness, proxy_path, until

MEGABYTE = 1 << 20


async def test_each_event_of_a_stream_arrives_before_the_next_is_made(hello: Harness) -> None:
    received = asyncio.Semaphore(0)

    async def stream(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(3):
            await response.write(b"data: %d\n\n" % number)
            await received.acquire()
        return response

    await hello.runtime(stream)

    async with hello.stream("POST", proxy_path("hello", "/api/execute/stream")) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        for number in range(3):
            assert await response.content.readuntil(b"\n\n") == b"data: %d\n\n" % number
            received.release()
        assert await response.read() == b""


async def test_a_body_arrives_while_it_is_being_sent(hello: Harness) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()

    async def read(request: web.BaseRequest) -> web.StreamResponse:
        while data := await request.content.readany():
            arrived.put_nowait(data)
        return web.Response(text="all")

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        assert await arrived.get() == b"one"
        yield b"two"
        assert await arrived.get() == b"two"

    await hello.runtime(read)

    answer = await hello.request("POST", proxy_path("hello"), data=body())

    assert (answer.status, answer.body) == (200, b"all")


async def test_an_answer_may_come_before_the_body_is_sent(hello: Harness) -> None:
    """Both ways at once: the runtime answers each piece while the client still sends."""

    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while data := await request.content.readany():
            await response.write(data.upper())
        return response

    echoed = asyncio.Semaphore(0)

    async def body() -> AsyncIterator[bytes]:
        for piece in (b"one", b"two", b"three"):
            yield piece
            await echoed.acquire()

    await hello.runtime(echo)

    async with hello.stream("POST", proxy_path("hello"), data=body()) as response:
        for piece in (b"ONE", b"TWO", b"THREE"):
            assert await response.content.readexactly(len(piece)) == piece
            echoed.release()


async def test_a_refusal_of_a_big_body_reaches_the_client(hello: Harness) -> None:
    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"code": "FILE_TOO_LARGE"}, status=413)

    await hello.runtime(refuse)

    answer = await hello.request("POST", proxy_path("hello"), data=io.BytesIO(b"x" * (2 * MEGABYTE)))

    assert (answer.status, answer.json["code"]) == (413, "FILE_TOO_LARGE")


async def test_nothing_is_buffered_whoever_is_the_slower_side(hello: Harness) -> None:
    sent = 0

    async def flood(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Length": str(200 * MEGABYTE)})
        await response.prepare(request)
        for _ in range(200):
            await response.write(b"x" * MEGABYTE)
            sent += 1
        return response

    await hello.runtime(flood)
    before = _peak()

    async with hello.stream("GET", proxy_path("hello")) as response:
        await response.content.readexactly(1)
        # Nobody reads: all buffers on the way fill up, and then everything has to stand still.
        standing = -1
        while standing != sent:
            standing = sent
            await asyncio.sleep(0.2)
        assert sent < 50
        rest = 1
        while data := await response.content.readany():
            rest += len(data)

    assert rest == 200 * MEGABYTE
    assert _peak() - before < 64 * MEGABYTE


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("with_length", [True, False])
async def test_big_bodies_arrive_whole_both_ways(hello: Harness, with_length: bool) -> None:
    block = bytes(range(256)) * 4096

    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        length = {"Content-Length": request.headers["Content-Length"]} if with_length else {}
        response = web.StreamResponse(headers=length)
        await response.prepare(request)
        while data := await request.content.readany():
            await response.write(data)
        return response

    async def body() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield block

    await hello.runtime(echo)
    headers = {"Content-Length": str(20 * len(block))} if with_length else {}

    answer = await hello.request("POST", proxy_path("hello"), data=body(), headers=headers)

    assert hashlib.sha256(answer.body).digest() == hashlib.sha256(block * 20).digest()
    assert ("Content-Length" in answer.headers) == with_length


async def test_a_client_that_hangs_up_ends_the_command(hello: Harness) -> None:
    ended = asyncio.Event()

    async def forever(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            await response.write(b"started")
            await asyncio.Event().wait()
        finally:
            ended.set()
        return response

    await hello.runtime(forever)

    async with hello.stream("POST", proxy_path("hello")) as response:
        assert await response.content.readexactly(7) == b"started"

    await asyncio.wait_for(ended.wait(), 5)
    await until(lambda: len(hello.audit_lines()) == 1)
    assert hello.audit_lines()[0]["reason"] == "the client hung up"
    assert hello.audit_lines()[0]["status"] == 200


async def test_a_client_that_hangs_up_before_the_answer_ends_the_command(hello: Harness) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def silent(request: web.BaseRequest) -> web.StreamResponse:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    await hello.runtime(silent)
    request = asyncio.create_task(hello.request("POST", proxy_path("hello"), data=b"x"))
    await started.wait()

    request.cancel()

    await asyncio.wait_for(ended.wait(), 5)
    await until(lambda: len(hello.audit_lines()) == 1)
    assert hello.audit_lines()[0]["status"] == 499


async def test_a_client_that_hangs_up_in_the_middle_of_its_body_is_no_whole_request(hello: Harness) -> None:
    entered, broken = asyncio.Event(), asyncio.Event()

    async def read(request: web.BaseRequest) -> web.StreamResponse:
        entered.set()
        try:
            while await request.content.readany():
                pass
        except (Exception, asyncio.CancelledError):
            broken.set()
            raise
        raise AssertionError("half a body looked like a whole one")

    await hello.runtime(read)
    _, writer = await hello.connect()
    head = f"POST {proxy_path('hello')} HTTP/1.1\r\nHost: x\r\nX-Remote-User: jane\r\n"
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n".encode())
    await writer.drain()
    await entered.wait()

    writer.transport.abort()

    await asyncio.wait_for(broken.wait(), 5)


async def test_a_client_that_asks_for_leave_gets_it_only_when_its_body_is_wanted(hello: Harness) -> None:
    await hello.raw_runtime()
    head = "POST {} HTTP/1.1\r\nHost: x\r\nX-Remote-User: jane\r\nExpect: 100-continue\r\n"
    head += "Content-Length: 4\r\n\r\n"
    reader, writer = await hello.connect()
    writer.write(head.format(proxy_path("hello")).encode())
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"body")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
    writer.close()

    hello.api.allow = lambda spec: False
    reader, writer = await hello.connect()
    writer.write(head.format(proxy_path("hello", "/api/read")).encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403")
    writer.close()
