"""Pings, with a server of the test's own that has less patience than the real one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp.test_utils import RawTestServer
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from sandpod_runtime.activity import Activity
from sandpod_runtime.budget import Budget
from sandpod_runtime.limits import Slots
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import Program
from sandpod_runtime.terminal import attachment
from sandpod_runtime.terminal.pty import Size
from sandpod_runtime.terminal.terminal import Key, Terminal


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachment, "_PING_SECONDS", 0.1)
    monkeypatch.setattr(attachment, "_SILENCE_SECONDS", 0.5)


@pytest_asyncio.fixture
async def url(impatient: None, tmp_path: Path) -> AsyncIterator[str]:
    """Of a terminal with a program that never reads."""
    commands = Commands(open_files=None)
    terminal = Terminal(
        Key("it"),
        program=Program(path="/bin/sleep", arguments=["sleep", "600"], environ={}, directory=str(tmp_path)),
        size=Size(cols=80, rows=24),
        commands=commands,
        memory=Budget(1 << 30),
        activity=Activity(),
        sockets=Slots("sockets", 10),
    )

    async def handle(request: BaseRequest) -> StreamResponse:
        socket = await attachment.upgraded(request)  # pyright: ignore[reportArgumentType]
        await socket.serve(terminal)
        return socket.response

    async with RawTestServer(handle) as server:
        yield str(server.make_url("/"))
        await terminal.destroy()


async def test_a_peer_who_answers_pings_may_be_silent_otherwise(url: str) -> None:
    async with aiohttp.ClientSession() as http, http.ws_connect(url, autoping=False) as socket:
        assert (await socket.receive(5)).type is aiohttp.WSMsgType.TEXT
        for _ in range(15):  # three times as long as silence is borne
            message = await socket.receive(5)
            assert message.type is aiohttp.WSMsgType.PING
            await socket.pong(message.data)


async def test_a_peer_who_answers_no_ping_is_cut_off(url: str) -> None:
    async with aiohttp.ClientSession() as http, http.ws_connect(url, autoping=False) as socket:
        assert (await socket.receive(5)).type is aiohttp.WSMsgType.TEXT
        while (message := await socket.receive(5)).type is aiohttp.WSMsgType.PING:
            pass
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1011)
        assert message.extra == "no answer to pings"


async def test_a_peer_who_is_held_back_does_not_count_as_silent(url: str) -> None:
    """Its answers are not read as long as its input has no room."""
    hasty = aiohttp.ClientWSTimeout(ws_close=0.1)  # pyright: ignore[reportCallIssue]
    async with aiohttp.ClientSession() as http, http.ws_connect(url, timeout=hasty) as socket:
        pasting = asyncio.create_task(_paste(socket))
        await asyncio.wait({pasting}, timeout=1.5)
        assert not pasting.done()
        assert not socket.closed
        pasting.cancel()
        await asyncio.gather(pasting, return_exceptions=True)


async def _paste(socket: aiohttp.ClientWebSocketResponse) -> None:
    while True:
        await socket.send_bytes(bytes(500_000))
