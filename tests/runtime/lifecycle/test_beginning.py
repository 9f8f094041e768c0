"""What a runtime begins with: the environment and the sessions of its former life, and declared processes."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, soon

Json = dict[str, Any]
Sleepy = Callable[..., Any]

SERVER = {
    "name": "web",
    "command": 'echo "$$" >> starts; echo "$COLOUR" > colour; exec sleep 1234.7',
    "env": {"COLOUR": "green"},
    "restart": "Always",
}


@asynccontextmanager
async def bound(runtime: Runtime, **changes: Any) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(runtime.url, headers={"X-Sandpod-Credential": CREDENTIAL}) as http:
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        async with http.post("/api/bind", json=BIND | changes, headers=headers) as response:
            assert response.status == 200, await response.text()
        yield http


async def ask(http: aiohttp.ClientSession, path: str, body: Json) -> Json:
    async with http.post(path, json=body) as response:
        found: Json = await response.json()
        assert response.status == 200, found
        return found


async def said_at_sleep(sleeper: Any, http: aiohttp.ClientSession) -> Json:
    await ask(http, "/api/lifecycle/sleep", {})
    return await asyncio.to_thread(sleeper.wait_for_sleep)


async def test_sessions_and_the_environment_outlive_a_sleep(sleepy: Sleepy, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "app").mkdir(parents=True)
    state = ["--state", str(tmp_path / "state")]
    first = sleepy(*state, sleep_after=None, insecure=False, workspace=workspace)
    async with bound(first.runtime) as http:
        await ask(http, "/api/environment", {"set": {"OF_ALL": "yes"}})
        command = "cd app; export MINE=1; plain=2; greet() { echo hello $1; }"
        await ask(http, "/api/execute", {"sessionId": "main", "command": command})
        said = await said_at_sleep(first, http)
    assert said["saved"] is True
    assert said["sessions"] == [{"id": "main", "cwd": str(workspace / "app")}]
    assert said["running"]["sessions"] == 1
    second = sleepy(*state, sleep_after=None, insecure=False, workspace=workspace)
    async with bound(second.runtime) as http:
        # There the moment the bind is answered.
        command = 'pwd; echo "$MINE $plain $OF_ALL"; greet you'
        found = await ask(http, "/api/execute", {"sessionId": "main", "command": command})
        assert found["stdout"] == f"{workspace}/app\n1 2 yes\nhello you\n"


async def test_a_runtime_that_ends_before_its_bind_leaves_what_was_saved(
    sleepy: Sleepy, tmp_path: Path
) -> None:
    state = ["--state", str(tmp_path / "state")]
    first = sleepy(*state, sleep_after=None, insecure=False)
    async with bound(first.runtime) as http:
        await ask(http, "/api/execute", {"sessionId": "main", "command": "kept=1"})
        await said_at_sleep(first, http)
    between = sleepy(*state, sleep_after=None, insecure=False)
    between.runtime.process.terminate()
    assert (await asyncio.to_thread(between.wait_for_sleep))["saved"] is False
    last = sleepy(*state, sleep_after=None, insecure=False)
    async with bound(last.runtime) as http:
        found = await ask(http, "/api/execute", {"sessionId": "main", "command": "echo $kept"})
        assert found["stdout"] == "1\n"


async def test_a_session_that_is_busy_does_not_keep_the_others_from_being_saved(
    sleepy: Sleepy, tmp_path: Path
) -> None:
    state = ["--state", str(tmp_path / "state")]
    first = sleepy(*state, sleep_after=None, insecure=False)
    async with bound(first.runtime) as http:
        await ask(http, "/api/execute", {"sessionId": "free", "command": "kept=1"})
        busy = asyncio.create_task(
            http.post("/api/execute", json={"sessionId": "busy", "command": "touch ready; sleep 1234.8"})
        )
        await soon(lambda: (first.runtime.workspace / "ready").exists())
        await said_at_sleep(first, http)
        (await busy).close()
    second = sleepy(*state, sleep_after=None, insecure=False)
    async with bound(second.runtime) as http:
        found = await ask(http, "/api/execute", {"sessionId": "free", "command": "echo $kept"})
        assert found["stdout"] == "1\n"


async def test_what_was_spoiled_does_not_keep_a_sandbox_from_beginning(
    sleepy: Sleepy, tmp_path: Path
) -> None:
    for place in ("sessions/x", "sessions/main.json", "environment/changes.json"):
        spoiled = tmp_path / "state" / place
        spoiled.parent.mkdir(parents=True, exist_ok=True)
        spoiled.write_bytes(b"\0{[" * 1000)
    sleeper = sleepy("--state", str(tmp_path / "state"), sleep_after=None, insecure=False)
    async with bound(sleeper.runtime) as http:
        assert (await ask(http, "/api/execute", {"command": "echo yes"}))["stdout"] == "yes\n"
        await said_at_sleep(sleeper, http)


async def test_declared_processes_run_after_the_bind_and_are_gone_after_the_end(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None, insecure=False)
    workspace = sleeper.runtime.workspace
    async with bound(sleeper.runtime, processes=[SERVER]) as http:
        await soon(lambda: (workspace / "colour").exists() and (workspace / "colour").read_text() != "")
        assert (workspace / "colour").read_text() == "green\n"
        async with http.get("/api/process/web") as response:
            assert (await response.json())["process"]["status"] == "running"
        said = await said_at_sleep(sleeper, http)
    assert said["running"]["processes"] == 1
    # Ended with the sandbox, and not started again while it ended.
    assert len((workspace / "starts").read_text().splitlines()) == 1


async def test_an_idle_declared_process_keeps_nobody_awake(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None, insecure=False)
    async with bound(sleeper.runtime, processes=[SERVER], lifecycle={"sleepAfterSeconds": 1}):
        pass
    assert (await asyncio.to_thread(sleeper.wait_for_sleep))["reason"] == "idle"


async def test_a_bind_whose_processes_cannot_be_is_refused_and_may_be_repeated(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None, insecure=False)
    headers = {"X-Sandpod-Bind-Token": TOKEN}
    wrong: list[Any] = [
        [{"name": "", "command": "true"}],
        [{"name": "a/b", "command": "true"}],
        [{"name": "a"}],
        [SERVER | {"port": 70000}],
        [SERVER | {"restart": "Sometimes"}],
        [SERVER] * 65,
        "web",
    ]
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        for processes in wrong:
            body = BIND | {"processes": processes}
            async with http.post("/api/bind", json=body, headers=headers) as response:
                assert response.status == 400
                assert (await response.json())["code"] == "VALIDATION_FAILED"
    async with bound(sleeper.runtime) as http:
        assert (await ask(http, "/api/execute", {"command": "echo yes"}))["stdout"] == "yes\n"


async def test_an_operator_that_hangs_up_during_the_bind_leaves_no_half_begun_runtime(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None, insecure=False)
    credential = {"X-Sandpod-Credential": CREDENTIAL}
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        attempt = asyncio.create_task(
            http.post("/api/bind", json=BIND, headers={"X-Sandpod-Bind-Token": TOKEN})
        )
        await soon(lambda: bool(sleeper.runtime.logged("bound")))
        attempt.cancel()
        for _ in range(200):
            async with http.get("/api/version", headers=credential) as response:
                if response.status == 200:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError("it never began")
