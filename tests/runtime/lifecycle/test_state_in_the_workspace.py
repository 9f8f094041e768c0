"""The state directory as the operator places it, hidden in the workspace: nobody stumbles over it, and a user
who removes it loses what was saved and nothing else.
"""

import asyncio
import io
import json
import subprocess
import tarfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

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


async def ask(http: aiohttp.ClientSession, path: str, body: Json) -> Json:
    async with http.post(path, json=body) as response:
        found: Json = await response.json()
        assert response.status == 200, found
        return found


async def run(http: aiohttp.ClientSession, command: str, session: str | None = None) -> str:
    found = await ask(http, "/api/execute", {"command": command, "sessionId": session})
    assert found["exitCode"] == 0, found
    return found["stdout"]


class Box:
    """One sandbox whose runtimes come and go."""

    def __init__(self, sleepy: Sleepy, workspace: Path) -> None:
        self._sleepy = sleepy
        self.workspace = workspace

    @asynccontextmanager
    async def awake(self, **changes: Any) -> AsyncGenerator[aiohttp.ClientSession]:
        arguments = ["--state", f"{self.workspace}/.sandpod"]
        self.sleeper = self._sleepy(*arguments, sleep_after=None, insecure=False, workspace=self.workspace)
        async with bound(self.sleeper.runtime, **changes) as http:
            yield http

    async def sleep(self, http: aiohttp.ClientSession) -> Json:
        await ask(http, "/api/lifecycle/sleep", {})
        return await asyncio.to_thread(self.sleeper.wait_for_sleep)


@pytest_asyncio.fixture
async def box(sleepy: Sleepy, tmp_path: Path) -> Box:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Box(sleepy, workspace)


async def with_state(http: aiohttp.ClientSession) -> None:
    """Something of each kind that the runtime keeps there."""
    await run(http, "cd /usr; export MINE=1; greet() { echo hello; }", "main")
    await ask(http, "/api/environment", {"set": {"OF_ALL": "yes"}})
    await ask(http, "/api/session/save", {})


async def test_who_looks_at_the_workspace_does_not_see_it(box: Box) -> None:
    async with box.awake(setup=["echo set up > made"]) as http:
        await soon((box.workspace / "made").exists)
        await with_state(http)
        assert (box.workspace / ".sandpod" / "sessions").is_dir()
        listed = await ask(
            http, "/api/list-files", {"path": str(box.workspace), "options": {"recursive": True}}
        )
        assert [each["relativePath"] for each in listed["files"]] == ["made"]
        for path, pattern in (("find", "**/*"), ("grep", ".")):
            question = {"path": str(box.workspace), "pattern": pattern}
            found = await ask(http, f"/api/files/{path}", question)
            assert "sandpod" not in json.dumps(found).replace(str(box.workspace), "")
        async with http.get("/api/files/archive", params={"path": str(box.workspace)}) as response:
            with tarfile.open(fileobj=io.BytesIO(await response.read())) as archive:
                assert archive.getnames() == ["made"]
        assert await run(http, "ls") == "made\n"


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository."""
    origin = tmp_path / "origin"
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", origin], check=True)
    commit = ["git", "-C", origin, *identity, "commit", "-q", "--allow-empty", "-m", "first"]
    subprocess.run(commit, check=True)
    return origin


async def test_a_fresh_workspace_is_empty_and_a_repository_can_be_cloned_into_it(
    box: Box, origin: Path
) -> None:
    async with box.awake(setup=[f"git clone -q {origin} ."]) as http:
        async with http.get("/api/setup/log?follow=true") as response:
            log = await response.text()
        await soon(lambda: (box.workspace / ".sandpod" / "setup" / "done.json").exists())
        assert log == f"$ git clone -q {origin} .\n"
        assert await run(http, "git status --porcelain") == ""


async def test_git_does_not_see_it(box: Box) -> None:
    async with box.awake() as http:
        await with_state(http)
        assert (box.workspace / ".sandpod" / "environment").is_dir()
        await run(http, "git init -q . && touch mine")
        assert await run(http, "git status --porcelain") == "?? mine\n"
        await run(http, "git add . && git clean -qfd && test -d .sandpod/environment")
        assert await run(http, "git ls-files") == "mine\n"


async def test_who_watches_the_workspace_hears_nothing_of_it(box: Box) -> None:
    async with box.awake() as http, http.post("/api/watch", json={"path": str(box.workspace)}) as stream:
        assert b"watching" in await stream.content.readline()
        await with_state(http)
        assert (box.workspace / ".sandpod" / "sessions").is_dir()
        (box.workspace / "seen").touch()
        async with asyncio.timeout(10):
            while b"event" not in (line := await stream.content.readline()):
                pass
        assert json.loads(line.removeprefix(b"data: "))["path"] == str(box.workspace / "seen")


@pytest.mark.parametrize("how", ["find . -mindepth 1 -delete", "rm -rf .sandpod; mkdir .sandpod"])
async def test_a_user_who_removes_it_loses_what_was_saved_and_nothing_else(box: Box, how: str) -> None:
    async with box.awake() as http:
        await with_state(http)
        await box.sleep(http)
    async with box.awake() as http:
        # One session lives again, and one has not been used.
        await run(http, "kept=1", "other")
        await run(http, how)
        assert await run(http, "echo $kept", "other") == "1\n"
        await ask(http, "/api/environment", {"set": {"AFTER": "that"}})
        said = await box.sleep(http)
    assert said["saved"] is True
    assert {each["id"] for each in said["sessions"]} == {"main", "other"}
    async with box.awake() as http:
        assert await run(http, "echo $kept $AFTER $OF_ALL", "other") == "1 that yes\n"
        # Its functions were only on the disk; what the runtime knew by itself is there.
        assert await run(http, "pwd; echo $MINE; type greet 2>&1 || true", "main") != ""
        async with http.get("/api/session/main") as response:
            found = await response.json()
        assert found["cwd"] == "/usr"
        assert any("the file was changed" in line for line in found["missing"])
        assert (await box.sleep(http))["saved"] is True


async def test_a_link_in_its_place_is_not_followed_and_the_sandbox_works(box: Box, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (box.workspace / ".sandpod").symlink_to(tmp_path / "elsewhere")
    async with box.awake(setup=["echo ran"]) as http:
        assert await run(http, "echo works", "main") == "works\n"
        said = await box.sleep(http)
    assert said["saved"] is False
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.fixture
def mounted(tmp_path: Path, box: Box) -> Any:
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", box.workspace], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield box
    subprocess.run(["umount", "--lazy", box.workspace], check=True)


async def test_a_full_disk_loses_the_last_changes_and_not_what_was_saved(mounted: Box) -> None:
    async with mounted.awake() as http:
        await run(http, "first=1; cd /usr", "main")
        assert (await mounted.sleep(http))["saved"] is True
    async with mounted.awake() as http:
        await run(http, "second=2; big=$(head -c 300000 /dev/zero | tr '\\0' x)", "main")
        await run(http, "cat /dev/zero > filler 2>/dev/null || true")
        assert (await mounted.sleep(http))["saved"] is False
    assert not list((mounted.workspace / ".sandpod").rglob("*.new"))
    async with mounted.awake() as http:
        assert await run(http, "pwd; echo $first,$second", "main") == "/usr\n1,\n"
