"""Credentials for a clone: they work, and nobody gets to see them."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.git_server import PASSWORD, USER, GitServer, git, serving
from tests.support.runtime import Runtime, below, soon

Json = dict[str, Any]
Ask = Callable[..., Any]


def holders(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def environ(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_text(errors="replace")


@pytest.mark.parametrize("fields", [{"username": USER, "password": PASSWORD}, {"token": PASSWORD}])
async def test_credentials_open_a_private_repository_and_are_stored_nowhere(
    ask: Ask, server: GitServer, target: Path, fields: Json, tmp_path: Path
) -> None:
    server.private = True
    if "token" in fields:
        fields = {"username": USER, **fields}
    url = f"{server.url}/project.git"
    found = await ask("checkout", repoUrl=url, targetDir=str(target), **fields)
    assert found["branch"] == "main"

    assert holders(target, PASSWORD) == []
    # Nobody has the credentials later, so nothing was left at the server.
    assert "?" not in git("rev-list", "--objects", "--missing=print", "--all", directory=target)


async def test_a_wrong_password_is_an_authentication_error_and_is_not_told(
    ask: Ask, server: GitServer, target: Path, runtime: Runtime
) -> None:
    server.private = True
    url = server.url.replace("://", "://someone:wr0ng-secret@") + "/project.git"
    for fields in (
        {"repoUrl": url},
        {"repoUrl": f"{server.url}/project.git", "username": USER, "password": "wr0ng-secret"},
        {"repoUrl": f"{server.url}/project.git", "token": "wr0ng-secret"},
    ):
        found = await ask("checkout", targetDir=str(target), expect=401, **fields)
        assert found["code"] == "GIT_AUTH_FAILED"
        assert "wr0ng-secret" not in str(found)
        assert server.url.partition("://")[2] in found["context"]["repository"]
    assert "wr0ng-secret" not in str(runtime.log())


async def test_a_password_in_the_address_works_and_is_masked_in_errors(
    ask: Ask, server: GitServer, target: Path
) -> None:
    server.private = True
    url = server.url.replace("://", f"://{USER}:{PASSWORD}@") + "/project.git"
    found = await ask("checkout", repoUrl=url, targetDir=str(target), branch="nope", expect=404)
    assert PASSWORD not in str(found)
    assert "******@127.0.0.1" in found["context"]["repository"]
    found = await ask("checkout", repoUrl=url, targetDir=str(target))
    assert found["repoUrl"] == url


async def test_credentials_are_not_sent_to_where_a_server_redirects(
    ask: Ask, server: GitServer, target: Path
) -> None:
    server.private = True
    async with serving(server.root) as first:
        first.redirect_to = server.url
        await ask(
            "checkout",
            repoUrl=f"{first.url}/project.git",
            targetDir=str(target),
            username=USER,
            password=PASSWORD,
            expect=500,
        )
    assert server.asked
    assert all(given is None for _, given in server.asked)


async def test_the_runtimes_git_takes_no_credentials_helper_of_the_users(
    ask: Ask, server: GitServer, target: Path, start: Callable[..., Runtime], tmp_path: Path
) -> None:
    """A helper that stores passwords would be given ours after they worked."""
    server.private = True
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    runtime = start(environ={"HOME": str(home), "PATH": os.environ["PATH"]})
    body = {
        "repoUrl": f"{server.url}/project.git",
        "targetDir": str(target),
        "username": USER,
        "password": PASSWORD,
    }
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.post("/api/git/checkout", json=body) as response,
    ):
        assert response.status == 200, await response.text()
    assert not (home / ".git-credentials").exists()


async def test_credentials_appear_in_no_argument_and_no_variable(
    http: aiohttp.ClientSession, server: GitServer, target: Path, runtime: Runtime
) -> None:
    server.stalling = True
    body = {
        "repoUrl": f"{server.url}/project.git",
        "targetDir": str(target),
        "username": USER,
        "password": PASSWORD,
    }
    asking = asyncio.create_task(http.post("/api/git/checkout", json=body))
    await asyncio.wait_for(server.stalled.wait(), 20)
    pids = below(runtime.pid)
    assert any("remote-http" in line for line in pids.values())
    for pid, line in pids.items():
        assert PASSWORD not in line
        assert PASSWORD not in environ(pid)
    asking.cancel()
    await soon(lambda: below(runtime.pid) == {})
