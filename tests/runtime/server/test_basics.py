"""Greeting, ping, version, commands, lifecycle."""

from collections.abc import Callable

import aiohttp
import sandpod_runtime

from tests.support.runtime import Runtime


async def test_the_greeting_is_plain_text(http: aiohttp.ClientSession) -> None:
    async with http.get("/") as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert await response.text()


async def test_ping_is_a_non_empty_string(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/ping") as response:
        body = await response.json()
    assert body["status"] == "healthy"
    assert body["message"] == "healthy"
    assert body["uptime"] >= 0


async def test_version_is_the_runtimes_own(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/version") as response:
        body = await response.json()
    assert body["version"] == body["runtimeVersion"] == sandpod_runtime.__version__


async def test_version_is_the_configured_one_where_the_image_configures_it(
    start: Callable[..., Runtime],
) -> None:
    runtime = start(environ={"SANDBOX_VERSION": "0.12.7"})
    async with aiohttp.ClientSession(runtime.url) as http, http.get("/api/version") as response:
        body = await response.json()
    assert body["version"] == "0.12.7"
    assert body["runtimeVersion"] == sandpod_runtime.__version__


async def test_commands_are_the_programs_on_the_path(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/commands") as response:
        body = await response.json()
    assert {"sh", "ls", "cat"} <= set(body["availableCommands"])
    assert body["count"] == len(body["availableCommands"])


async def test_lifecycle_of_an_unbound_runtime_says_so(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/lifecycle") as response:
        body = await response.json()
    assert body["bound"] is False
    assert body["runningCommands"] == 0
    assert "sandbox" not in body


async def test_an_idle_runtime_is_small(start: Callable[..., Runtime]) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http, http.get("/") as response:
        await response.read()
    assert runtime.memory() <= 45
