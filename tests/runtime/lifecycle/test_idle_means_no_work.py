"""Idle means that no work is done: somebody at a terminal, or a stream that tells something, keeps a sandbox
awake; servers that wait, connections that say nothing and those who only look on do not.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.ports import free_port
from tests.support.runtime import soon
from tests.support.terminal import Viewer

Json = dict[str, Any]
Sleepy = Callable[..., Any]

SLEEP_AFTER = 1.5


async def asleep(sleeper: Any) -> Json:
    return await asyncio.to_thread(sleeper.wait_for_sleep)


async def start_process(http: aiohttp.ClientSession, command: str) -> str:
    async with http.post("/api/process/start", json={"command": command}) as response:
        assert response.status == 200
        return (await response.json())["processId"]


async def test_keys_and_output_of_a_terminal_keep_it_awake_and_an_open_one_does_not(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=SLEEP_AFTER)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        async with http.post("/api/terminal/create", json={"id": "it", "shell": "cat"}) as response:
            assert response.status == 200
        async with Viewer(http, "/ws/terminal?terminalId=it") as viewer:
            # Several times as long as it stays awake by itself.
            for _ in range(8):
                await viewer.type("x")
                await asyncio.sleep(SLEEP_AFTER / 4)
            assert sleeper.is_awake
            said = await asleep(sleeper)
    assert said["reason"] == "idle"
    assert said["running"]["terminals"] == 1


async def test_a_stream_with_bytes_keeps_it_awake_and_one_with_heartbeats_does_not(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=SLEEP_AFTER)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        talking = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.4; done; exec sleep 1234.6"
        process = await start_process(http, talking)
        async with http.get(f"/api/process/{process}/stream") as stream:
            await stream.content.readuntil(b'"data":"8\\n"')
            assert sleeper.is_awake
            # From here on it is quiet, and the stream is open to the end.
            rest = await stream.read()
    assert b'"exit"' in rest
    assert (await asleep(sleeper))["running"]["processes"] == 1


async def test_a_forgotten_watch_keeps_nobody_awake_until_something_changes(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=SLEEP_AFTER)
    workspace: Path = sleeper.runtime.workspace
    async with (
        aiohttp.ClientSession(sleeper.runtime.url) as http,
        http.post("/api/watch", json={"path": "."}) as stream,
    ):
        assert b"watching" in await stream.content.readline()
        for number in range(4):
            (workspace / f"file-{number}").touch()
            await stream.content.readuntil(f"file-{number}".encode())
            await asyncio.sleep(SLEEP_AFTER / 2)
        assert sleeper.is_awake
        assert b'"stopped"' in await stream.read()
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_a_dev_server_that_waits_keeps_nobody_awake_nor_does_a_silent_connection(
    sleepy: Sleepy,
) -> None:
    sleeper = sleepy(sleep_after=SLEEP_AFTER)
    port = free_port()
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        await start_process(http, f"exec python3 -m http.server {port} --bind 127.0.0.1")
        async with http.post("/api/port-watch", json={"port": port}) as response:
            assert b"ready" in await response.read()
        _, to_server = await asyncio.open_connection("127.0.0.1", port)
        _, to_runtime = await asyncio.open_connection("127.0.0.1", sleeper.runtime.port)
        assert (await asleep(sleeper))["running"]["processes"] == 1
        for each in (to_server, to_runtime):
            each.close()
            with contextlib.suppress(OSError):
                await each.wait_closed()


async def test_a_quiet_build_that_burns_cpu_is_not_put_to_sleep(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=SLEEP_AFTER)
    workspace: Path = sleeper.runtime.workspace
    script = "import time\nwhile time.process_time() < 3: pass\nopen('built', 'w').close()"
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        await start_process(http, f"python3 -c {json.dumps(script)}".replace("\\n", "\n"))
        await soon(lambda: (workspace / "built").exists() or not sleeper.is_awake, timeout=60)
    assert (workspace / "built").exists()
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_leases_that_are_renewed_as_for_preview_traffic_keep_it_awake(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=SLEEP_AFTER)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        for _ in range(6):
            body = {"seconds": SLEEP_AFTER / 2, "holder": "gateway"}
            async with http.post("/api/lifecycle/lease", json=body) as response:
                assert response.status == 200
            await asyncio.sleep(SLEEP_AFTER / 3)
    assert sleeper.is_awake
    assert (await asleep(sleeper))["reason"] == "idle"


@pytest.mark.parametrize("sleep_after", [1, 1.5])
async def test_it_never_sleeps_sooner_than_it_may(sleepy: Sleepy, sleep_after: float) -> None:
    said = await asleep(sleepy(sleep_after=sleep_after))
    begun, ended = (float(said[name][17:23]) for name in ("lastActiveAt", "endedAt"))
    assert (ended - begun) % 60 >= sleep_after - 0.002  # both times are cut to milliseconds
