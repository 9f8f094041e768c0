"""Connections that come before any credential: how many there may be, and how long they may say nothing."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
import pytest_asyncio
from sandpod_runtime.budget import Budget
from sandpod_runtime.connection import ControlServer, Crowd
from sandpod_runtime.gate import Gate
from sandpod_runtime.identity import Identity
from sandpod_runtime.routing import Router
from sandpod_runtime.server import Door

from tests.support.runtime import Runtime, soon

HEAD_SECONDS = 0.5
NOT_WHOLE = [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"]


@pytest_asyncio.fixture
async def impatient() -> AsyncIterator[int]:
    """The runtime's own server with little patience, in this process."""
    gate = Gate(Identity(bind_sha256="", insecure=True))
    door = Door(gate=gate, router=Router({}), memory=Budget(1 << 20))
    server = ControlServer(door.handle, crowd=Crowd(most=9, head_seconds=HEAD_SECONDS))
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()
    await server.shutdown(1)


async def hung_up_on(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_idle_connections_do_not_take_all_descriptors(start: Callable[..., Runtime]) -> None:
    runtime = start(prefix=["sh", "-c", 'ulimit -n 128; exec "$@"', "sh"])
    before = runtime.descriptors()
    idle = [await asyncio.open_connection("127.0.0.1", runtime.port) for _ in range(320)]
    turned_away = [reader for reader, _ in idle[64:]]
    for reader in turned_away:
        await hung_up_on(reader)
    assert runtime.descriptors() < 100
    for _, writer in idle:
        writer.close()
    await soon(lambda: runtime.descriptors() <= before)
    async with aiohttp.ClientSession(runtime.url) as http, http.get("/api/ping") as response:
        assert response.status == 200
    assert runtime.failures() == []


@pytest.mark.parametrize("sent", NOT_WHOLE)
async def test_who_does_not_say_what_it_wants_is_hung_up_on(impatient: int, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient)
    begun = time.monotonic()
    writer.write(sent)
    await hung_up_on(reader)
    assert time.monotonic() - begun >= HEAD_SECONDS / 2
    writer.close()


async def test_who_has_said_it_may_take_its_time(impatient: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient)
    for _ in range(2):
        writer.write(b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
        await asyncio.sleep(2 * HEAD_SECONDS)
    writer.close()
