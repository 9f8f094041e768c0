"""One sandbox over a sleep: what somebody works on is there again in the next runtime."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.ports import free_port
from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, soon

Json = dict[str, Any]
Sleepy = Callable[..., Any]


@asynccontextmanager
async def bound(runtime: Runtime, **changes: Any) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(runtime.url, headers={"X-Sandpod-Credential": CREDENTIAL}) as http:
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        async with http.post("/api/bind", json=BIND | changes, headers=headers) as response:
            assert response.status == 200, await response.text()
        yield http


async def run(http: aiohttp.ClientSession, command: str) -> str:
    async with http.post("/api/execute", json={"command": command, "sessionId": "main"}) as response:
        found = await response.json()
        assert response.status == 200, found
        return found["stdout"]


async def shown(http: aiohttp.ClientSession) -> Json:
    async with http.get("/api/lifecycle") as response:
        return await response.json()


async def served(http: aiohttp.ClientSession, port: int) -> str:
    """What the declared server says, once the setup is over and its port listens."""
    async with http.get("/api/setup/log?follow=true") as response:
        await response.read()
    for _ in range(1000):
        if (await shown(http))["setup"]["state"] != "running":
            break
        await asyncio.sleep(0.02)
    async with http.post("/api/port-watch", json={"port": port, "processId": "web"}) as response:
        assert b'"ready"' in await response.read()
    async with aiohttp.ClientSession() as outside, outside.get(f"http://127.0.0.1:{port}/page") as response:
        return await response.text()


async def test_files_sessions_setup_processes_and_their_ports_are_back_after_a_sleep(
    sleepy: Sleepy, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    port = free_port()
    server = {
        "name": "web",
        "command": f"exec python3 -m http.server {port} --bind 127.0.0.1 --directory site",
        "port": port,
    }
    body = {
        "setup": ["mkdir site", "echo $FROM_THE_BIND > site/page; echo once >> ran"],
        "processes": [server],
        "lifecycle": {"sleepAfterSeconds": 1.5},
    }

    def awake() -> Any:
        state = ["--state", f"{workspace}/.sandpod"]
        return sleepy(*state, sleep_after=None, insecure=False, workspace=workspace)

    first = awake()
    async with bound(first.runtime, **body) as http:
        assert await served(http, port) == "yes\n"
        await run(http, "mkdir -p app && cd app && export MINE=1 && plain=2 && greet() { echo hello $1; }")
        await run(http, "echo written > file; alias ll='echo aliased'")
    said = await asyncio.to_thread(first.wait_for_sleep)
    assert (said["reason"], said["saved"], said["setup"]) == ("idle", True, "succeeded")
    assert said["sessions"] == [{"id": "main", "cwd": f"{workspace}/app"}]
    assert said["running"]["processes"] == 1
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        raise AssertionError("the server has outlived its sandbox")

    second = awake()
    async with bound(second.runtime, **body) as http:
        assert await run(http, 'pwd; echo "$MINE $plain"; greet you; cat file; ll') == (
            f"{workspace}/app\n1 2\nhello you\nwritten\naliased\n"
        )
        assert await served(http, port) == "yes\n"
        assert (await shown(http))["setup"]["state"] == "skipped"
    said = await asyncio.to_thread(second.wait_for_sleep)
    assert (said["reason"], said["saved"], said["setup"]) == ("idle", True, "skipped")
    assert (workspace / "ran").read_text() == "once\n"
    await soon(lambda: not second.runtime.descendants())
