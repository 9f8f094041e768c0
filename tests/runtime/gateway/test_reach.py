"""Operator and gateway find out together whether a port of the operator's is closed: over real sockets, where
nothing listening stands for a NetworkPolicy that keeps the gateway out.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from sandpod_gateway.health import Health, HealthServer
from sandpod_gateway.listener import Listener
from sandpod_gateway.metrics import Metrics
from sandpod_gateway.reach import Reach
from sandpod_gateway.settings import Settings
from sandpod_operator import enforcement
from sandpod_operator.enforcement import GREETING, Report, ask_gateway, listen

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Ports:
    """Of the operator: what listens there, and how often somebody came."""

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self._stack = stack
        self.visits = 0

    async def serve(self, talk: Talk) -> int:
        async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.visits += 1
            await talk(reader, writer)
            writer.close()

        server = await self._stack.enter_async_context(await asyncio.start_server(visited, "127.0.0.1", 0))
        return server.sockets[0].getsockname()[1]

    async def metrics(self) -> int:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nok\n")

        return await self.serve(answer)

    async def canary(self) -> int:
        """The operator's own."""
        server = await self._stack.enter_async_context(await listen(port=0))
        # Each family has got a port of its own.
        return next(each.getsockname()[1] for each in server.sockets if each.family == socket.AF_INET)

    async def somebody(self, says: bytes) -> int:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(says)

        return await self.serve(greet)

    def nothing(self) -> int:
        """A port at which nobody listens, and that nobody else gets meanwhile."""
        taken = self._stack.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]

    async def gateway(self, *, metrics: int, canary: int) -> int:
        """Its plain port."""
        settings = Settings(
            operator_host="127.0.0.1", operator_metrics_port=metrics, operator_canary_port=canary
        )
        health = HealthServer(
            health=Health(missing=list[str]), metrics=Metrics(gauges={}), reach=Reach(settings)
        )
        listener = Listener(health.handle, max_connections=64)
        await listener.listen(port=0)
        self._stack.push_async_callback(listener.close)
        return listener.port

    async def answering(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> int:
        """Something else at the gateway's address."""
        runner = web.ServerRunner(web.Server(handler))
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner.addresses[0][1]


@pytest.fixture
async def ports() -> AsyncIterator[Ports]:
    async with contextlib.AsyncExitStack() as stack:
        yield Ports(stack)


async def test_an_open_and_a_closed_port_are_told_apart(ports: Ports) -> None:
    gateway = await ports.gateway(metrics=await ports.metrics(), canary=ports.nothing())
    assert await ask_gateway("127.0.0.1", port=gateway) == Report(open=True, closed=False)


async def test_a_port_that_should_be_closed_and_is_not_is_seen(ports: Ports) -> None:
    gateway = await ports.gateway(metrics=await ports.metrics(), canary=await ports.canary())
    assert await ask_gateway("127.0.0.1", port=gateway) == Report(open=True, closed=True)


async def test_an_operator_that_is_away_is_not_taken_for_a_policy(ports: Ports) -> None:
    gateway = await ports.gateway(metrics=ports.nothing(), canary=ports.nothing())
    assert await ask_gateway("127.0.0.1", port=gateway) == Report(open=False, closed=False)


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"sand"])
async def test_a_proxy_that_accepts_every_connection_is_not_the_operator(ports: Ports, says: bytes) -> None:
    gateway = await ports.gateway(metrics=await ports.metrics(), canary=await ports.somebody(says))
    assert await ask_gateway("127.0.0.1", port=gateway) == Report(open=True, closed=False)


async def test_who_asks_all_the_time_does_not_make_the_gateway_knock_all_the_time(ports: Ports) -> None:
    gateway = await ports.gateway(metrics=await ports.metrics(), canary=await ports.somebody(GREETING))
    reports = await asyncio.gather(*(ask_gateway("127.0.0.1", port=gateway) for _ in range(20)))
    assert set(reports) == {Report(open=True, closed=True)}
    assert ports.visits == 2


async def test_silence_is_given_up(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandpod_gateway.reach.PATIENCE", 0.1)
    hangs = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hangs.wait()

    gateway = await ports.gateway(metrics=await ports.metrics(), canary=await ports.serve(say_nothing))
    assert await ask_gateway("127.0.0.1", port=gateway) == Report(open=True, closed=False)
    hangs.set()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"[]"),
        (200, b"[" * 5000),
        (200, b'{"open": 1, "closed": 0}'),
        (200, b'{"open": true}'),
        (200, b'{"open": true, "closed": false, "more": "' + b"x" * 100_000 + b'"}'),
        (404, b"not found\n"),
        (503, b'{"open": true, "closed": false}'),
        (302, b""),
    ],
)
async def test_whatever_is_no_report_is_none(ports: Ports, status: int, body: bytes) -> None:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=body, headers={"Location": "http://127.0.0.1/reach"})

    assert await ask_gateway("127.0.0.1", port=await ports.answering(answer)) is None


async def test_a_gateway_that_does_not_answer_has_nothing_to_report(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enforcement, "PATIENCE", aiohttp.ClientTimeout(total=0.1))
    hangs = asyncio.Event()

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        await hangs.wait()
        return web.Response()

    assert await ask_gateway("127.0.0.1", port=await ports.answering(answer)) is None
    assert await ask_gateway("127.0.0.1", port=ports.nothing()) is None
    hangs.set()
