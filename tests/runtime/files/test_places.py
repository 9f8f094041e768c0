"""Where relative paths are: in the session's directory, or the workspace."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp

from tests.support.runtime import Runtime, soon

Call = Callable[..., Any]


async def delete_session(http: aiohttp.ClientSession, name: str) -> None:
    async with http.post("/api/session/delete", json={"sessionId": name}) as response:
        assert response.status == 200


async def test_a_relative_path_is_below_the_sessions_directory(
    call: Call, execute: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    await execute("mkdir inner && cd inner", sessionId="files")
    found = await call("write", path="a.txt", content="x", sessionId="files")
    assert found["path"] == "a.txt"
    assert (runtime.workspace / "inner/a.txt").read_text() == "x"
    await call("write", path="a.txt", content="y")
    assert (runtime.workspace / "a.txt").read_text() == "y"
    await call("write", path="a.txt", content="z", sessionId="__DISABLE_SESSION__")
    assert (runtime.workspace / "a.txt").read_text() == "z"
    params = {"path": "a.txt", "sessionId": "files"}
    async with http.get("/api/files/raw", params=params) as response:
        assert await response.read() == b"x"
    [entry] = (await call("list-files", path=".", sessionId="files"))["files"]
    assert entry["absolutePath"] == str(runtime.workspace / "inner/a.txt")
    await delete_session(http, "files")


async def test_no_file_operation_waits_for_a_command_of_its_session(
    call: Call, execute: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    await execute("true", sessionId="busy")
    running = asyncio.create_task(
        execute("touch begun; while [ ! -e go ]; do sleep 0.02; done", sessionId="busy")
    )
    await soon(lambda: (runtime.workspace / "begun").exists())
    absolute = str(runtime.workspace / "a.txt")
    await call("write", path=absolute, content="x", sessionId="busy")
    assert (await call("read", path="a.txt", sessionId="busy"))["content"] == "x"
    await call("write", path="go", content="", sessionId="busy")
    await running
    await delete_session(http, "busy")


async def test_file_operations_make_no_sessions(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    for path in ("a.txt", str(runtime.workspace / "a.txt")):
        await call("write", path=path, content="x", sessionId="unheard-of")
    async with http.get("/api/session/list") as response:
        assert "unheard-of" not in await response.text()
