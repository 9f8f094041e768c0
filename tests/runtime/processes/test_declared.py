"""The processes that a sandbox declares: started at the bind, and again when they end."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest_asyncio

from tests.support.processes import Processes
from tests.support.runtime import BIND, CREDENTIAL, TERMINATED, TOKEN, Runtime, soon

Bound = Callable[[list[dict[str, Any]]], Any]


@pytest_asyncio.fixture
async def bound(start: Callable[..., Runtime]) -> AsyncIterator[Bound]:
    """A runtime that is bound with these processes, and how a client sees them."""
    runtime = start(insecure=False)
    headers = {"X-Sandpod-Bind-Token": TOKEN, "X-Sandpod-Credential": CREDENTIAL}
    async with aiohttp.ClientSession(runtime.url, headers=headers) as http:

        async def bind(declared: list[dict[str, Any]]) -> tuple[Processes, Runtime]:
            async with http.post("/api/bind", json=BIND | {"processes": declared}) as response:
                assert response.status == 200, await response.text()
            return Processes(http), runtime

        yield bind


async def test_they_are_processes_that_know_what_the_bind_brought(bound: Bound) -> None:
    processes, _ = await bound(
        [
            {
                "name": "web",
                "command": "echo $FROM_THE_BIND $OWN $PWD; exec sleep 33.0125",
                "cwd": "/tmp",
                "env": {"OWN": "mine"},
                "port": 8080,
            }
        ]
    )
    await processes.wait("web", "log", text="yes mine /tmp", timeoutMs=5000)
    found = await processes.get("web")
    assert (found["status"], found["declared"], found["restarts"], found["port"]) == (
        "running",
        True,
        0,
        8080,
    )


async def test_one_that_ends_is_started_again_and_keeps_its_log(bound: Bound) -> None:
    processes, _ = await bound([{"name": "job", "command": "echo run; exit 1", "restart": "OnFailure"}])
    await processes.wait("job", "log", text="run\nrun\n", timeoutMs=10_000)
    found = await processes.get("job")
    assert found["restarts"] >= 1
    assert found["status"] in ("starting", "running")


async def test_one_that_may_end_is_over_then(bound: Bound) -> None:
    processes, _ = await bound(
        [
            {"name": "once", "command": "exit 3", "restart": "Never"},
            {"name": "done", "command": "true", "restart": "OnFailure"},
        ]
    )
    assert (await processes.wait("once", timeoutMs=5000))["exitCode"] == 3
    assert (await processes.wait("done", timeoutMs=5000))["status"] == "completed"


async def test_one_that_cannot_start_says_why_and_is_tried_again(bound: Bound) -> None:
    processes, _ = await bound([{"name": "lost", "command": "true", "cwd": "/no/such/place"}])
    assert (await processes.get("lost"))["status"] == "starting"
    assert "/no/such/place" in (await processes.logs("lost"))["stderr"]


async def test_who_kills_one_is_rid_of_it(bound: Bound) -> None:
    processes, _ = await bound(
        [{"name": "runs", "command": "exec sleep 33.0125"}, {"name": "waits", "command": "exit 1"}]
    )
    for name in ("runs", "waits"):
        await processes.kill(name)
        assert (await processes.get(name))["status"] == "killed"


async def test_none_is_started_again_while_the_runtime_stops(bound: Bound) -> None:
    _, runtime = await bound(
        [{"name": "runs", "command": "exec sleep 33.0125"}, {"name": "waits", "command": "exit 1"}]
    )
    await soon(lambda: bool(runtime.logged("a declared process ended")))
    assert runtime.stop() == TERMINATED
    assert runtime.failures() == []
