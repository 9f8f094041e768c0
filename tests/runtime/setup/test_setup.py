"""The setup on a real runtime: in which order it runs, that it runs once, what it leaves and what it says."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, running, soon

Json = dict[str, Any]
Start = Callable[..., Runtime]


@asynccontextmanager
async def bound(runtime: Runtime, **changes: Any) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(runtime.url, headers={"X-Sandpod-Credential": CREDENTIAL}) as http:
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        async with http.post("/api/bind", json=BIND | changes, headers=headers) as response:
            assert response.status == 200, await response.text()
        yield http


async def about(http: aiohttp.ClientSession) -> Json:
    async with http.get("/api/lifecycle") as response:
        return await response.json()


async def ended(http: aiohttp.ClientSession) -> Json:
    async with asyncio.timeout(20):
        # The log ends a moment before the result is there.
        while True:
            await log(http, follow=True)
            if (found := (await about(http))["setup"])["state"] != "running":
                return found


async def log(http: aiohttp.ClientSession, *, follow: bool = False) -> str:
    async with http.get("/api/setup/log", params={"follow": "true"} if follow else {}) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        return await response.text()


async def test_without_a_setup_there_is_nothing_to_tell(start: Start) -> None:
    async with bound(start(insecure=False)) as http:
        assert (await about(http))["setup"] == {"state": "none", "step": 0, "steps": 0}
        assert await log(http, follow=True) == ""


async def test_the_steps_run_in_order_in_the_workspace_with_the_environment(start: Start) -> None:
    runtime = start(insecure=False)
    steps = ["echo first $FROM_THE_BIND > told", "pwd >> told; echo said; echo warned >&2"]
    async with bound(runtime, setup=steps) as http:
        found = await ended(http)
        text = await log(http)
    assert (runtime.workspace / "told").read_text() == f"first yes\n{runtime.workspace}\n"
    assert (found["state"], found["step"], found["steps"], found["exitCode"]) == ("succeeded", 2, 2, 0)
    assert found["startedAt"] <= found["finishedAt"]
    assert "command" not in found
    assert found["output"] == text
    assert text.startswith(f"$ {steps[0]}\n$ {steps[1]}\n")
    assert sorted(text.splitlines()[2:]) == ["said", "warned"]


async def test_the_bind_does_not_wait_for_it_and_processes_do(start: Start) -> None:
    runtime = start(insecure=False)
    workspace = runtime.workspace
    web = {"name": "web", "command": "cp made served; exec sleep 1234.1"}
    steps = ["touch begun; until test -e go; do sleep 0.01; done; echo ready > made"]
    async with bound(runtime, setup=steps, processes=[web]) as http:
        await soon(lambda: (workspace / "begun").exists())
        found = (await about(http))["setup"]
        assert (found["state"], found["step"], found["command"]) == ("running", 1, steps[0])
        async with http.get("/api/process/list") as response:
            assert (await response.json())["processes"] == []
        (workspace / "go").touch()
        assert (await ended(http))["state"] == "succeeded"
        await soon(lambda: (workspace / "served").exists())
    assert (workspace / "made").read_text() == "ready\n"


async def test_the_first_step_that_fails_ends_it_and_processes_start_all_the_same(start: Start) -> None:
    runtime = start(insecure=False)
    web = {"name": "web", "command": "touch served; exec sleep 1234.2"}
    steps = ["true", "echo no such package; exit 3", "touch never"]
    async with bound(runtime, setup=steps, processes=[web]) as http:
        found = await ended(http)
        await soon(lambda: (runtime.workspace / "served").exists())
    assert not (runtime.workspace / "never").exists()
    assert (found["state"], found["step"], found["exitCode"]) == ("failed", 2, 3)
    assert found["command"] == steps[1]
    assert found["output"].endswith("no such package\nStep 2 of 3 ended with exit code 3.\n")


@pytest.mark.parametrize(("step", "why"), [("kill -9 $$", 137), ("no-such-program", 127)])
async def test_every_way_to_fail_is_one(start: Start, step: str, why: int) -> None:
    async with bound(start(insecure=False), setup=[step]) as http:
        found = await ended(http)
    assert (found["state"], found["exitCode"]) == ("failed", why)


async def slept(runtime: Runtime, http: aiohttp.ClientSession) -> None:
    async with http.post("/api/lifecycle/sleep", json={}) as response:
        assert response.status == 200
    assert await asyncio.to_thread(runtime.process.wait, 30) == 0


async def test_it_runs_once_for_each_workspace_and_its_log_stays(start: Start, tmp_path: Path) -> None:
    options = {"insecure": False, "workspace": tmp_path, "arguments": ["--state", f"{tmp_path}/.sandpod"]}
    steps = ["echo once >> ran"]
    first = start(**options)
    async with bound(first, setup=steps) as http:
        before = await ended(http)
        await slept(first, http)
    second = start(**options)
    async with bound(second, setup=steps) as http:
        found = (await about(http))["setup"]
        assert (found["state"], found["step"]) == ("skipped", 1)
        assert found["finishedAt"] == before["finishedAt"]
        assert await log(http, follow=True) == "$ echo once >> ran\n"
        await slept(second, http)
    # Another list is another setup.
    async with bound(start(**options), setup=[*steps, "echo twice >> ran"]) as http:
        assert (await ended(http))["state"] == "succeeded"
    assert (tmp_path / "ran").read_text() == "once\nonce\ntwice\n"


async def test_without_a_state_that_stays_it_runs_at_every_start(start: Start, tmp_path: Path) -> None:
    for _ in range(2):
        runtime = start(insecure=False, workspace=tmp_path)
        async with bound(runtime, setup=["echo again >> ran"]) as http:
            assert (await ended(http))["state"] == "succeeded"
            await slept(runtime, http)
    assert (tmp_path / "ran").read_text() == "again\nagain\n"


async def test_what_failed_is_run_again_at_the_next_start(start: Start, tmp_path: Path) -> None:
    options = {"insecure": False, "workspace": tmp_path, "arguments": ["--state", f"{tmp_path}/.sandpod"]}
    steps = ["echo try >> ran; test -e fixed"]
    for state in ("failed", "failed", "succeeded"):
        runtime = start(**options)
        async with bound(runtime, setup=steps) as http:
            assert (await ended(http))["state"] == state
            await slept(runtime, http)
        if state == "failed" and (tmp_path / "ran").read_text() == "try\ntry\n":
            (tmp_path / "fixed").touch()
    assert (tmp_path / "ran").read_text() == "try\ntry\ntry\n"


async def test_what_a_sleep_cuts_off_is_killed_told_and_run_again(start: Start, tmp_path: Path) -> None:
    message = tmp_path / "last-words"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    state = ["--state", str(workspace / ".sandpod"), "--termination-log", str(message)]
    options = {"insecure": False, "workspace": workspace, "arguments": state}
    web = {"name": "web", "command": "touch served; exec sleep 1234.3"}
    steps = ["echo try >> ran; test -e fast || exec sleep 1234.4", "touch done"]
    first = start(**options)
    async with bound(first, setup=steps, processes=[web]) as http:
        await soon(lambda: running("sleep 1234.4"))
        await slept(first, http)
    assert not running("sleep 1234.4")
    assert not (workspace / "done").exists()
    assert not (workspace / "served").exists()
    assert json.loads(message.read_text())["setup"] == "running"
    assert first.failures() == []
    (workspace / "fast").touch()
    second = start(**options)
    async with bound(second, setup=steps) as http:
        assert (await ended(http))["state"] == "succeeded"
        await slept(second, http)
    assert (workspace / "ran").read_text() == "try\ntry\n"
    assert json.loads(message.read_text())["setup"] == "succeeded"


async def test_nobody_falls_asleep_in_a_setup(start: Start) -> None:
    runtime = start(insecure=False)
    lifecycle = {"sleepAfterSeconds": 0.2, "keepAlive": False}
    # It says and uses nothing; with a sleep of 0.2 s it would be asleep several times over.
    async with bound(runtime, setup=["sleep 1.5; touch made"], lifecycle=lifecycle) as http:
        found = await about(http)
        assert "setup" in found["awakeBecause"]
        assert "secondsLeft" not in found
    assert await asyncio.to_thread(runtime.process.wait, 30) == 0
    assert (runtime.workspace / "made").exists()


async def test_the_log_is_followed_while_it_runs(start: Start) -> None:
    runtime = start(insecure=False)
    steps = ["echo begun; until test -e go; do sleep 0.01; done; echo over"]
    async with bound(runtime, setup=steps) as http:
        async with http.get("/api/setup/log?follow=true") as response:
            assert await response.content.readuntil(b"begun\n") == f"$ {steps[0]}\nbegun\n".encode()
            (runtime.workspace / "go").touch()
            assert await response.text() == "over\n"
        assert await log(http) == f"$ {steps[0]}\nbegun\nover\n"


async def test_of_much_output_the_beginning_and_the_end_are_kept(start: Start, tmp_path: Path) -> None:
    options = {"insecure": False, "workspace": tmp_path, "arguments": ["--state", f"{tmp_path}/.sandpod"]}
    steps = ["echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last"]
    runtime = start(**options)
    async with bound(runtime, setup=steps) as http:
        found = await ended(http)
        text = await log(http)
        await slept(runtime, http)
    assert len(found["output"]) == 2000
    assert text.startswith(f"$ {steps[0]}\nfirst\nxxx")
    assert text.endswith("xxx\nlast\n")
    assert "bytes of output were cut here]" in text
    assert len(text) < (1 << 20) + 100
    async with bound(start(**options), setup=steps) as http:
        assert await log(http) == text


async def test_what_a_step_leaves_running_is_no_part_of_it(start: Start) -> None:
    runtime = start(insecure=False)
    steps = ["(sleep 0.8; echo late; sleep 1234.5) & echo left"]
    async with bound(runtime, setup=steps) as http:
        assert (await ended(http))["state"] == "succeeded"
        assert await log(http) == f"$ {steps[0]}\nleft\n"
        assert running("sleep 0.8") or running("sleep 1234.5")


async def test_what_a_program_puts_in_the_place_of_its_record_harms_nobody(
    start: Start, tmp_path: Path
) -> None:
    options = {"insecure": False, "workspace": tmp_path, "arguments": ["--state", f"{tmp_path}/.sandpod"]}
    for spoil in (
        "mkdir -p .sandpod/setup && echo '{' > .sandpod/setup/done.json",
        "rm -rf .sandpod && mkdir -p .sandpod/setup/done.json .sandpod/setup/log",
        "rm -rf .sandpod && mkdir -p .sandpod/setup && mkfifo .sandpod/setup/done.json .sandpod/setup/log",
    ):
        runtime = start(**options)
        async with bound(runtime, setup=["true"]) as http:
            assert (await ended(http))["state"] == "succeeded"
            async with http.post("/api/execute", json={"command": spoil}) as response:
                assert (await response.json())["success"]
            await slept(runtime, http)
        assert runtime.failures() == []


@pytest.mark.parametrize("setup", [["x"] * 33, ["x" * 8193], [""], [1], "x"])
async def test_a_setup_without_measure_is_refused(start: Start, setup: Any) -> None:
    runtime = start(insecure=False)
    headers = {"X-Sandpod-Bind-Token": TOKEN}
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.post("/api/bind", json=BIND | {"setup": setup}, headers=headers) as response,
    ):
        assert response.status == 400
        assert "setup" in (await response.json())["message"]
