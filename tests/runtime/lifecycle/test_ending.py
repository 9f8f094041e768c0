"""How a runtime ends: what it still does, what it refuses, and what it says."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import TERMINATED, Runtime, soon

Json = dict[str, Any]
Sleepy = Callable[..., Any]

# Takes no SIGTERM, and so the end takes until the SIGKILL.
STUBBORN = "trap '' TERM; touch ready; while :; do sleep 0.1; done"


async def asleep(sleeper: Any) -> Json:
    return await asyncio.to_thread(sleeper.wait_for_sleep)


async def test_a_sandbox_that_is_told_to_sleep_does_and_passes_on_the_reason(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        body = {"reason": "spec.paused"}
        async with http.post("/api/lifecycle/sleep", json=body) as response:
            assert response.status == 200
            assert (await response.json())["phase"] == "draining"
    said = await asleep(sleeper)
    assert (said["reason"], said["detail"]) == ("requested", "spec.paused")


async def test_sigterm_ends_it_well_with_what_runs(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        body = {"command": "touch ready; sleep 1234.6"}
        running = asyncio.create_task(http.post("/api/execute", json=body))
        await soon(lambda: (sleeper.runtime.workspace / "ready").exists())
        sleeper.runtime.process.send_signal(signal.SIGTERM)
        async with await running as response:
            # The client learns what became of its command.
            assert (await response.json())["exitCode"] == 143
    said = await asleep(sleeper)
    assert said["reason"] == "terminated"
    assert said["running"]["commands"] == 1


async def test_what_runs_in_a_session_is_told_that_the_runtime_stops(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        body = {"command": "touch ready; sleep 1235.6", "sessionId": "s"}
        running = asyncio.create_task(http.post("/api/execute", json=body))
        await soon(lambda: (sleeper.runtime.workspace / "ready").exists())
        sleeper.runtime.process.send_signal(signal.SIGTERM)
        async with await running as response:
            found = await response.json()
    assert (response.status, found["code"]) == (410, "SESSION_DESTROYED")
    assert "the runtime is stopping" in found["message"]
    await asleep(sleeper)


async def test_the_first_reason_is_the_one(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        running = asyncio.create_task(http.post("/api/execute", json={"command": STUBBORN}))
        await soon(lambda: (sleeper.runtime.workspace / "ready").exists())
        async with http.post("/api/lifecycle/sleep", json={}) as response:
            assert response.status == 200
        for _ in range(3):
            sleeper.runtime.process.send_signal(signal.SIGTERM)
        (await running).close()
    assert (await asleep(sleeper))["reason"] == "requested"


async def test_once_the_end_has_begun_nothing_is_done_any_more(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None)
    workspace = sleeper.runtime.workspace
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        running = asyncio.create_task(http.post("/api/execute", json={"command": STUBBORN}))
        await soon(lambda: (workspace / "ready").exists())
        sleeper.runtime.process.send_signal(signal.SIGTERM)
        await soon(lambda: bool(sleeper.runtime.logged("stopping")))
        async with http.get("/api/lifecycle") as response:
            assert (await response.json())["phase"] == "draining"
        async with http.get("/") as response:
            assert response.status == 200
        for path, body in (
            ("/api/execute", {"command": "touch late"}),
            ("/api/lifecycle/lease", {}),
            ("/api/lifecycle/sleep", {}),
            ("/api/lifecycle", {"keepAlive": True}),
        ):
            async with http.post(path, json=body) as response:
                refused = await response.json()
            assert (response.status, refused["code"]) == (503, "CONTAINER_UNAVAILABLE")
            assert response.headers["Connection"] == "close"
        (await running).close()
    await asleep(sleeper)
    assert not (workspace / "late").exists()


async def test_a_body_that_comes_too_late_does_nothing(sleepy: Sleepy) -> None:
    """Its request was admitted while there was still time."""
    sleeper = sleepy(sleep_after=None)
    workspace = sleeper.runtime.workspace
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        running = asyncio.create_task(http.post("/api/execute", json={"command": STUBBORN}))
        await soon(lambda: (workspace / "ready").exists())
        body = b'{"command": "touch late"}'
        head = f"POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", sleeper.runtime.port)
        writer.write(head.encode() + body[:5])
        await writer.drain()
        async with http.get("/api/lifecycle") as response:
            while (await response.json())["activity"]["inFlight"] < 2:
                await asyncio.sleep(0.02)
                response = await http.get("/api/lifecycle")
        sleeper.runtime.process.send_signal(signal.SIGTERM)
        await soon(lambda: bool(sleeper.runtime.logged("stopping")))
        writer.write(body[5:])
        answer = await asyncio.wait_for(reader.read(), 30)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"CONTAINER_UNAVAILABLE" in answer
        (await running).close()
        writer.close()
    await asleep(sleeper)
    assert not (workspace / "late").exists()


async def test_an_end_without_a_file_for_the_last_words_is_as_good(
    start: Callable[..., Runtime], tmp_path: Path
) -> None:
    runtime = start(arguments=["--termination-log", str(tmp_path / "absent" / "log")])
    assert await asyncio.to_thread(runtime.stop) == TERMINATED
    assert runtime.failures() == []


def test_on_a_machine_without_a_kubelet_nothing_is_made_in_dev(start: Callable[..., Runtime]) -> None:
    existed = Path("/dev/termination-log").exists()
    assert start().stop() == TERMINATED
    assert Path("/dev/termination-log").exists() == existed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_unbound_runtime_ends_at_once(sleepy: Sleepy, number: signal.Signals) -> None:
    sleeper = sleepy(sleep_after=None, insecure=False)
    sleeper.runtime.process.send_signal(number)
    assert (await asleep(sleeper))["reason"] == "terminated"


async def test_no_secret_is_in_the_last_words(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        body = {"command": "true # hunter2", "env": {"PASSWORD": "hunter2"}}
        async with http.post("/api/execute", json=body) as response:
            assert response.status == 200
    sleeper.runtime.process.send_signal(signal.SIGTERM)
    assert "hunter2" not in json.dumps(await asleep(sleeper))
