"""The end of the runtime, and what terminals mean for its sleep."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import BIND, CREDENTIAL, TERMINATED, TOKEN, Runtime, running
from tests.support.terminal import Viewer


async def create(http: aiohttp.ClientSession, **fields: Any) -> None:
    async with http.post("/api/terminal/create", json=fields) as response:
        assert response.status == 200, await response.text()


async def test_when_the_runtime_stops_sockets_are_told_and_shells_end(start: Callable[..., Runtime]) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:
        await create(http, id="it", shell="bash")
        async with Viewer(http, "/ws/terminal?terminalId=it") as viewer:
            await viewer.run("sleep 1033.01 &")
            stopping = asyncio.create_task(asyncio.to_thread(runtime.stop))
            assert await viewer.closed() == 1001
            assert await stopping == TERMINATED
    assert not running("sleep 1033.01")
    assert runtime.failures() == []


async def test_a_terminal_needs_the_credential(start: Callable[..., Runtime]) -> None:
    runtime = start(insecure=False)
    async with aiohttp.ClientSession(runtime.url) as http:
        async with http.post("/api/bind", json=BIND, headers={"X-Sandpod-Bind-Token": TOKEN}) as response:
            assert response.status == 200
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await http.ws_connect("/ws/terminal?terminalId=x")
        assert caught.value.status == 401
    async with aiohttp.ClientSession(runtime.url, headers={"X-Sandpod-Credential": CREDENTIAL}) as http:
        await create(http, id="it", shell="sh")
        async with Viewer(http, "/ws/terminal?terminalId=it") as viewer:
            assert "yes" in await viewer.run("echo $FROM_THE_BIND")


async def test_pages_from_elsewhere_get_no_terminal_on_a_laptop(http: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await http.ws_connect("/ws/terminal?terminalId=x", origin="https://example.com")
    assert caught.value.status == 403


async def test_an_open_terminal_keeps_nobody_awake_and_bytes_do(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    async def life() -> dict[str, Any]:
        async with http.get("/api/lifecycle") as response:
            found: dict[str, Any] = (await response.json())["activity"]
            return found

    await create(http, id="it", shell="cat")
    async with Viewer(http, "/ws/terminal?terminalId=it") as viewer:
        await viewer.told("ready")
        quiet = await life()
        assert quiet["inFlight"] == 0, quiet
        await asyncio.sleep(0.01)
        assert (await life())["lastActiveAt"] == quiet["lastActiveAt"]
        await viewer.type("x\r")
        await viewer.shows("x\r\nx\r\n")
        assert (await life())["lastActiveAt"] > quiet["lastActiveAt"]
    async with http.post("/api/terminal/destroy", json={"id": "it"}) as response:
        assert response.status == 200
