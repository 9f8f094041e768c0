"""Connections that are there to be in the way: heads that drip, answers that nobody reads, thousands of idle
ones from one source; and what a drain leaves of those that are well behaved.
"""

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from sandpod_gateway import connection, listener, upload
from sandpod_gateway.listener import Listener

from tests.support.gateway_harness import Harness, until
from tests.support.recorder import Recorder

IDLE = 10_000
# Both ends of each are in this process; the rest of it needs some as well.
SPARE = 4_000
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def exposed(gateway: Harness) -> str:
    await gateway.raw_runtime()
    await gateway.expose("hello", {"port": 8080})
    return gateway.preview_host("hello")


@pytest_asyncio.fixture
async def program(built: Harness) -> AsyncIterator[Recorder]:
    program = Recorder()
    async with await program.listen():
        built.programs["10.0.0.1", 8080] = program.port
        yield program
        await program.close()


async def connect(gateway: Harness, *, source: str = "127.0.0.1") -> Streams:
    port = gateway.gateway.http_port
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):
            return await reader.read()
    return b""


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["new", "used"])
async def test_a_head_that_drips_is_not_waited_for(
    gateway: Harness, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    reader, writer = await connect(gateway)
    if before:
        writer.write(before)
        await reader.readuntil(b"\r\n\r\nok\n")
    dripping = asyncio.create_task(_drip(writer))

    answer = await rest_of(reader)

    dripping.cancel()
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
    writer.close()


async def _drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.1\r\nX: ")
    while True:
        writer.write(b"x")
        await asyncio.sleep(0.05)


async def test_a_connection_that_is_used_again_and_again_outlives_the_time_of_one_head(
    gateway: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    reader, writer = await connect(gateway)
    for _ in range(8):
        # In two pieces, and with a pause behind it that is longer than half of a head's time
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        await asyncio.sleep(0)
        writer.write(b"Host: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\nok\n")).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(0.06)
    writer.close()


@pytest.mark.parametrize("served", [False, True], ids=["first", "behind another"])
async def test_a_flood_of_headers_ends_before_it_fills_the_memory(gateway: Harness, served: bool) -> None:
    host = await exposed(gateway)
    reached, release = asyncio.Event(), asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        reached.set()
        await release.wait()
        return web.Response(text="ok")

    await gateway.program(wait)
    reader, writer = await connect(gateway)
    if served:
        writer.write(f"GET /slow HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await asyncio.wait_for(reached.wait(), 5)
    sent = 0
    writer.write(b"GET / HTTP/1.1\r\n")
    with contextlib.suppress(ConnectionError):
        while sent < 200 * listener.MAX_OPEN_HEAD and not reader.at_eof():
            line = b"X: " + b"x" * 8000 + b"\r\n"
            writer.write(line)
            await writer.drain()
            sent += len(line)
            await asyncio.sleep(0)

    answer = await rest_of(reader)

    assert sent < 200 * listener.MAX_OPEN_HEAD
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    release.set()
    writer.close()


async def test_whoever_takes_nothing_of_an_answer_is_cut_off(
    gateway: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.2)
    host = await exposed(gateway)
    gone = asyncio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65_536)
        finally:
            gone.set()

    await gateway.program(endless)
    reader, writer = await connect(gateway)
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    # More than this is not read.
    await reader.readuntil(b"\r\n\r\n")

    await asyncio.wait_for(gone.wait(), 10)

    writer.transport.abort()


async def test_a_body_of_which_nothing_more_comes_is_not_waited_for(
    gateway: Harness, program: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "STALL_SECONDS", 0.2)
    host = await exposed(gateway)
    reader, writer = await connect(gateway)
    writer.write(f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10\r\n\r\nhalf".encode())

    assert (await reader.readline()).startswith(b"HTTP/1.1 400")

    assert program.take() == []
    writer.close()


async def test_requests_that_wait_behind_one_another_are_few(gateway: Harness, program: Recorder) -> None:
    """And all of them are answered in the end."""
    host = await exposed(gateway)
    reader, writer = await connect(gateway)
    requests = [f"GET /{n} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for n in range(100)]

    writer.write(b"".join(requests))

    for _ in requests:
        assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
    assert [line for line, _ in program.take()] == [b"GET /%d" % n for n in range(100)]
    writer.close()


async def test_one_source_has_a_part_of_the_connections_and_others_the_rest() -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="ok")

    server = Listener(answer, max_connections=10, per_source=3)
    await server.listen(port=0)
    held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
    await until(lambda: server.open == 3)

    one_more, writer = await asyncio.open_connection("127.0.0.1", server.port)
    assert await rest_of(one_more) == b""
    writer.close()

    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=("127.0.0.2", 0))
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    # Who leaves makes room.
    held.pop()[1].close()
    await until(lambda: server.open == 2)
    held.append(await asyncio.open_connection("127.0.0.1", server.port))
    held[-1][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await held[-1][0].readline()).startswith(b"HTTP/1.1 200")
    for _, writer in held:
        writer.close()
    await server.close()


async def test_thousands_of_idle_connections_of_one_source_are_in_nobodys_way(
    gateway: Harness, program: Recorder
) -> None:
    host = await exposed(gateway)
    count = min(IDLE, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle: list[socket.socket] = []
    web_port = gateway.gateway.http_port
    try:
        for number in range(count):
            idle.append(socket.socket())
            idle[-1].setblocking(False)
            with contextlib.suppress(BlockingIOError):
                idle[-1].connect(("127.0.0.1", web_port))
            if number % 200 == 0:
                await _is_served(gateway, host)
        for _ in range(50):
            await _is_served(gateway, host)
    finally:
        for each in idle:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert len(program.take()) == len(range(0, count, 200)) + 50
    # And they themselves are served again, when the others have gone.
    await _is_served_from(gateway, host, source="127.0.0.1")


async def _is_served(gateway: Harness, host: str) -> None:
    await _is_served_from(gateway, host, source="127.0.0.2")


async def _is_served_from(gateway: Harness, host: str, *, source: str) -> None:
    async with asyncio.timeout(10):
        while True:
            reader, writer = await connect(gateway, source=source)
            writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = await rest_of(reader)
            writer.close()
            if source != "127.0.0.1" or answer:
                assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
                return


async def test_a_drain_loses_nothing_of_a_body_and_of_a_tunnel_that_are_under_way(gateway: Harness) -> None:
    host = await exposed(gateway)

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/body":
            return web.Response(text=str(len(await request.read())))
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(message.data)
        return ws

    await gateway.program(serve)
    idle, idle_writer = await connect(gateway)
    idle_writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    await idle.readuntil(b"\r\n\r\nok\n")
    uploading, upload_writer = await connect(gateway)
    upload_writer.write(f"POST /body HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000\r\n\r\n".encode())
    tunnel, tunnel_writer = await connect(gateway)
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    upgrade = f"Connection: Upgrade\r\nUpgrade: websocket\r\n{key}"
    tunnel_writer.write(f"GET /ws HTTP/1.1\r\nHost: {host}\r\n{upgrade}\r\n".encode())
    assert (await tunnel.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")

    gateway.stop.set()
    # That idle connections are closed says that the port is.
    assert await rest_of(idle) == b""

    for _ in range(10):
        upload_writer.write(b"x" * 10_000)
        await upload_writer.drain()
    # A text frame with a mask of zeros
    tunnel_writer.write(b"\x81\x82\0\0\0\0ok")
    assert await asyncio.wait_for(tunnel.readexactly(4), 5) == b"\x81\x02ok"
    tunnel_writer.close()
    answer = await rest_of(uploading)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"100000")
    for writer in (idle_writer, upload_writer):
        writer.close()
    await asyncio.wait_for(gateway.running, 10)


async def test_new_requests_are_answered_until_the_port_closes(built: Harness, program: Recorder) -> None:
    await built.start(drain_delay_seconds=0.5)
    host = await exposed(built)
    lost: list[bytes] = []
    answered = 0
    built.stop.set()
    while not built.running.done():
        try:
            reader, writer = await connect(built)
        except OSError:
            # Closed: nobody is lost who is told so at once.
            break
        writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = await rest_of(reader)
        writer.close()
        if answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nConnection: close\r\n" in answer:
            answered += 1
        else:
            lost.append(answer)

    assert answered
    # The last may have been accepted by the kernel only, and not by us: it has had no answer at all.
    assert lost in ([], [b""])
