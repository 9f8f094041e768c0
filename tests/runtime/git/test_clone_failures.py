"""Clones that fail: each with its own code, and with nothing left behind."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.git_server import GitServer, names
from tests.support.runtime import Runtime, below, soon

Json = dict[str, Any]
Ask = Callable[..., Any]


async def test_a_missing_branch_has_its_own_code(ask: Ask, bare: Path, target: Path) -> None:
    found = await ask("checkout", repoUrl=str(bare), targetDir=str(target), branch="nope", expect=404)
    assert found["code"] == "GIT_BRANCH_NOT_FOUND"
    assert found["context"]["branch"] == "nope"
    assert names(target) is None


async def test_a_missing_repository_has_its_own_code(
    ask: Ask, server: GitServer, tmp_path: Path, target: Path
) -> None:
    for url in (str(tmp_path / "none"), f"file://{tmp_path}/none", f"{server.url}/none.git"):
        found = await ask("checkout", repoUrl=url, targetDir=str(target), expect=404)
        assert found["code"] == "GIT_REPOSITORY_NOT_FOUND", url
        assert found["context"]["repository"] == url
        assert "fatal" in found["message"]
        assert names(target) is None


async def test_a_private_repository_without_credentials_is_the_protocols_500(
    ask: Ask, server: GitServer, target: Path
) -> None:
    server.private = True
    found = await ask("checkout", repoUrl=f"{server.url}/project.git", targetDir=str(target), expect=500)
    assert found["code"] == "GIT_OPERATION_FAILED"
    assert "could not read Username" in found["message"]
    assert "token" in found["suggestion"]


async def test_a_server_that_nobody_runs_is_a_network_error(ask: Ask, target: Path) -> None:
    for url in ("http://127.0.0.1:1/x.git", "git://127.0.0.1:1/x.git", "https://127.0.0.1:1/x.git"):
        found = await ask("checkout", repoUrl=url, targetDir=str(target), expect=502)
        assert found["code"] == "GIT_NETWORK_ERROR", found
        assert names(target) is None


async def test_a_target_that_holds_something_is_left_alone(ask: Ask, bare: Path, target: Path) -> None:
    os.mkdir(target)  # noqa: PTH102 (a Path's own method is not for a coroutine)
    (target / "mine").write_text("mine")
    found = await ask("checkout", repoUrl=str(bare), targetDir=str(target), expect=500)
    assert found["code"] == "GIT_CLONE_FAILED"
    assert names(target) == ["mine"]


async def test_an_empty_target_that_was_there_stays_when_the_clone_fails(
    ask: Ask, bare: Path, target: Path
) -> None:
    os.mkdir(target)  # noqa: PTH102
    await ask("checkout", repoUrl=str(bare), targetDir=str(target), branch="nope", expect=404)
    assert names(target) == []
    await ask("checkout", repoUrl=str(bare), targetDir=str(target))
    assert (target / "file.txt").exists()


async def test_a_target_below_a_file_is_the_files_error(ask: Ask, bare: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = await ask("checkout", repoUrl=str(bare), targetDir=f"{tmp_path}/file/x", expect=400)
    assert found["code"] == "NOT_DIRECTORY"


async def test_a_timeout_ends_all_of_git_and_leaves_nothing(
    ask: Ask, server: GitServer, target: Path, runtime: Runtime
) -> None:
    server.stalling = True
    found = await ask(
        "checkout", repoUrl=f"{server.url}/project.git", targetDir=str(target), timeoutMs=700, expect=502
    )
    assert found["code"] == "GIT_NETWORK_ERROR"
    assert "700 ms" in found["message"]
    assert names(target) is None
    assert below(runtime.pid) == {}


async def test_a_client_that_hangs_up_leaves_nothing(
    http: aiohttp.ClientSession, server: GitServer, target: Path, runtime: Runtime
) -> None:
    server.stalling = True
    body = {"repoUrl": f"{server.url}/project.git", "targetDir": str(target)}
    for path in ("/api/git/checkout", "/api/git/checkout/stream"):
        server.stalled.clear()
        asking = asyncio.create_task(http.post(path, json=body))
        await asyncio.wait_for(server.stalled.wait(), 20)
        assert names(target) is not None
        if asking.done():
            asking.result().close()
        asking.cancel()
        await soon(lambda: names(target) is None and below(runtime.pid) == {})


async def test_without_git_in_the_image_the_error_says_so(
    start: Callable[..., Runtime], tmp_path: Path
) -> None:
    runtime = start(environ={"HOME": str(tmp_path), "PATH": str(tmp_path)})
    body = {"repoUrl": "/x", "targetDir": "y"}
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.post("/api/git/checkout", json=body) as response,
    ):
        found = await response.json()
    assert (found["code"], found["context"]["command"]) == ("COMMAND_NOT_FOUND", "git")
    assert not (runtime.workspace / "y").exists()
