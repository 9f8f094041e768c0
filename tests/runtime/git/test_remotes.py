"""What a repository exchanges with its remotes: `/api/git/fetch`, `pull`, `push`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_server import PASSWORD, USER, GitServer, git, names

Ask = Callable[..., Any]
LOGIN = {"username": USER, "password": PASSWORD}


@pytest.fixture
def work(server: GitServer, bare: Path) -> Path:
    """A clone of the server's, and commits by somebody who can be known."""
    place = bare.parent / "clone"
    git("clone", "--quiet", str(bare), str(place), directory=bare.parent)
    git("remote", "set-url", "origin", f"{server.url}/project.git", directory=place)
    git("config", "user.name", "Ada", directory=place)
    git("config", "user.email", "ada@example.com", directory=place)
    return place


def commit(place: Path, text: str) -> None:
    (place / "file.txt").write_text(text)
    git("commit", "--quiet", "--all", "-m", f"Write {text}", directory=place)


def commit_elsewhere(bare: Path, text: str) -> None:
    other = bare.parent / "project.git-work"
    commit(other, text)
    git("push", "--quiet", "origin", "main", directory=other)


async def test_a_push_sends_the_branch_that_is_checked_out(ask: Ask, work: Path, bare: Path) -> None:
    git("checkout", "--quiet", "-b", "feature", directory=work)
    commit(work, "pushed")
    found = await ask("push", cwd=str(work), setUpstream=True)
    assert found["updates"] == [
        {
            "flag": "*",
            "source": "HEAD",
            "target": "refs/heads/feature",
            "summary": "[new branch]",
        }
    ]
    assert git("log", "-1", "--format=%s", "feature", directory=bare).strip() == "Write pushed"
    assert (await ask("status", cwd=str(work)))["upstream"] == "origin/feature"
    assert (await ask("push", cwd=str(work)))["updates"][0]["flag"] == "="


async def test_a_push_that_would_lose_commits_is_refused_until_forced(
    ask: Ask, work: Path, bare: Path
) -> None:
    commit_elsewhere(bare, "theirs")
    commit(work, "mine")
    found = await ask("push", cwd=str(work), expect=500)
    assert found["code"] == "GIT_OPERATION_FAILED"
    assert "pull first" in found["suggestion"]
    assert found["context"]["updates"][0]["flag"] == "!"
    # Even then not what nobody here has seen.
    await ask("push", cwd=str(work), force=True, expect=500)
    await ask("fetch", cwd=str(work))
    await ask("push", cwd=str(work), force=True)
    assert git("log", "-1", "--format=%s", "main", directory=bare).strip() == "Write mine"


async def test_credentials_are_for_one_call(ask: Ask, work: Path, server: GitServer) -> None:
    server.private = True
    commit(work, "private")
    found = await ask("push", cwd=str(work), expect=500)
    assert "could not read Username" in found["message"]
    found = await ask("push", cwd=str(work), **{**LOGIN, "password": "wr0ng-secret"}, expect=401)
    assert found["code"] == "GIT_AUTH_FAILED"
    assert "wr0ng-secret" not in str(found)
    await ask("push", cwd=str(work), **LOGIN)
    await ask("fetch", cwd=str(work), **LOGIN)
    await ask("pull", cwd=str(work), **LOGIN)
    assert PASSWORD not in (work / ".git/config").read_text()
    await ask("fetch", cwd=str(work), expect=500)


async def test_credentials_are_only_for_the_web(ask: Ask, work: Path, bare: Path) -> None:
    git("remote", "add", "local", str(bare), directory=work)
    found = await ask("push", cwd=str(work), remote="local", **LOGIN, expect=400)
    assert found["context"]["validationErrors"][0]["field"] == "password"


async def test_a_pull_brings_new_commits(ask: Ask, work: Path, bare: Path) -> None:
    found = await ask("pull", cwd=str(work))
    assert (found["updated"], found["summary"]) == (False, "Already up to date.")
    commit_elsewhere(bare, "theirs")
    found = await ask("pull", cwd=str(work))
    assert found["summary"] == "Fast-forward"
    assert (found["updated"], found["branch"]) == (True, "main")
    assert found["commit"] == git("rev-parse", "main", directory=bare).strip()
    assert (work / "file.txt").read_text() == "theirs"
    found = await ask("pull", cwd=str(work), remote="origin", branch="other")
    assert not found["updated"]


async def test_both_sides_with_commits_need_a_decision(ask: Ask, work: Path, bare: Path) -> None:
    commit_elsewhere(bare, "theirs")
    (work / "mine.txt").write_text("")
    git("add", ".", directory=work)
    git("commit", "--quiet", "-m", "Mine", directory=work)
    found = await ask("pull", cwd=str(work), expect=500)
    assert "rebase" in found["suggestion"]
    found = await ask("pull", cwd=str(work), rebase=True)
    log = await ask("log", cwd=str(work), limit=2)
    assert [commit["subject"] for commit in log["commits"]] == ["Mine", "Write theirs"]


async def test_conflicts_are_named(ask: Ask, work: Path, bare: Path) -> None:
    commit_elsewhere(bare, "theirs")
    commit(work, "mine")
    found = await ask("pull", cwd=str(work), rebase=False, expect=500)
    assert found["context"]["conflicts"] == ["Merge conflict in file.txt"]
    assert "merge --abort" in found["suggestion"]
    entries = (await ask("status", cwd=str(work)))["entries"]
    assert [(entry["kind"], entry["index"], entry["worktree"]) for entry in entries] == [
        ("unmerged", "U", "U")
    ]


async def test_a_fetch_changes_nothing_that_is_checked_out(ask: Ask, work: Path, bare: Path) -> None:
    commit_elsewhere(bare, "theirs")
    await ask("fetch", cwd=str(work), prune=True)
    found = await ask("status", cwd=str(work))
    assert (found["behind"], found["clean"]) == (1, True)


async def test_what_a_remote_lacks_has_its_code(ask: Ask, work: Path, server: GitServer) -> None:
    found = await ask("pull", cwd=str(work), branch="nope", expect=404)
    assert (found["code"], found["context"]["branch"]) == ("GIT_BRANCH_NOT_FOUND", "nope")
    found = await ask("push", cwd=str(work), branch="nope", expect=404)
    assert found["code"] == "GIT_BRANCH_NOT_FOUND"
    found = await ask("fetch", cwd=str(work), remote="nope", expect=404)
    assert found["code"] == "GIT_REPOSITORY_NOT_FOUND"
    found = await ask("fetch", cwd=str(work), remote=f"{server.url}/none.git", expect=404)
    assert found["code"] == "GIT_REPOSITORY_NOT_FOUND"
    found = await ask("fetch", cwd=str(work), remote="http://127.0.0.1:1/x.git", expect=502)
    assert found["code"] == "GIT_NETWORK_ERROR"


@pytest.mark.parametrize("branch", [":main", "main:other", "+main"])
async def test_a_push_takes_names_and_no_refspecs(ask: Ask, work: Path, branch: str) -> None:
    assert (await ask("push", cwd=str(work), branch=branch, expect=400))["code"] == "VALIDATION_FAILED"


async def test_programs_in_place_of_transports_are_refused(ask: Ask, work: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    found = await ask("fetch", cwd=str(work), remote=f"ext::touch {mark}", expect=500)
    assert "not allowed" in found["message"]
    git("remote", "add", "evil", f"ext::touch {mark}", directory=work)
    await ask("fetch", cwd=str(work), remote="evil", expect=500)
    assert "mark" not in (names(tmp_path) or [])
