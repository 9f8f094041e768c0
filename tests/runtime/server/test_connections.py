"""Connections that come before any credential: how many there may be, and how long they may say nothing."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
import pytest_asyncio
from sandpod_runtime.activity import Activity
from sandpod_runtime.budget import Budget
from sandpod_runtime.connection import ControlServer, Crowd
from sandpod_runtime.door import Door
from sandpod_runtime.gate import Gate
from sandpod_runtime.identity import Identity
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.metrics import Requests
from sandpod_runtime.routing import Router

from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, soon

HEAD_SECONDS = 0.5
KEPT_SECONDS = 2.0
NOT_WHOLE = [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"]


@pytest_asyncio.fixture
async def impatient() -> AsyncIterator[int]:
    """The runtime's own server with little patience, in this process."""
    gate = Gate(Identity(bind_sha256="", insecure=True), Life())
    door = Door(
        gate=gate, router=Router({}), memory=Budget(1 << 20), activity=Activity(), requests=Requests()
    )
    crowd = Crowd(most=9, head_seconds=HEAD_SECONDS, kept_seconds=KEPT_SECONDS)
    server = ControlServer(door.handle, crowd=crowd)
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
        writer.write(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b'"}')).startswith(b"HTTP/1.1 404")
        await asyncio.sleep(2 * HEAD_SECONDS)
    writer.close()


async def test_a_connection_that_nobody_uses_again_is_closed(impatient: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", impatient)
    writer.write(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 404")
    writer.close()


STRANGERS = [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS /api/ping HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/ping HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("request_", STRANGERS)
async def test_a_stranger_keeps_no_connection(
    start: Callable[..., Runtime], request_: bytes, bound: bool
) -> None:
    runtime = start(insecure=False)
    if bound:
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        async with (
            aiohttp.ClientSession(runtime.url) as http,
            http.post("/api/bind", json=BIND, headers=headers) as response,
        ):
            assert response.status == 200
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(request_)
    answer = await asyncio.wait_for(reader.read(), 10)
    assert b"\r\nConnection: close\r\n" in answer
    writer.close()


async def test_who_has_the_credential_keeps_its_connection(start: Callable[..., Runtime]) -> None:
    runtime = start(insecure=False)
    async with aiohttp.ClientSession(runtime.url) as http:
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        async with http.post("/api/bind", json=BIND, headers=headers) as response:
            assert response.headers.get("Connection") != "close"
        headers = {"X-Sandpod-Credential": CREDENTIAL}
        async with http.get("/api/ping", headers=headers) as response:
            assert response.headers.get("Connection") != "close"
