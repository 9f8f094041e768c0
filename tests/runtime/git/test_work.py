"""What one does in a repository: `/api/git/status`, `diff`, `log`, `add`, `commit`, branches."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.git_server import git
from tests.support.runtime import Runtime

Json = dict[str, Any]
Ask = Callable[..., Any]
AUTHOR = {"name": "Ada", "email": "ada@example.com"}


@pytest.fixture
def work(bare: Path) -> Path:
    """A clone on main, with a commit that the remote does not have."""
    place = bare.parent / "project.git-work"
    git("branch", "--set-upstream-to=origin/main", "main", directory=place)
    (place / "new.txt").write_text("new\n")
    git("add", ".", directory=place)
    git("commit", "--quiet", "-m", "Add a file", directory=place)
    return place


async def test_status_tells_the_branch_and_each_change(ask: Ask, work: Path) -> None:
    (work / "file.txt").write_text("changed\n")
    git("mv", "new.txt", "renamed to.txt", directory=work)
    (work / "ünknown\n").write_text("")
    found = await ask("status", cwd=str(work))
    assert (found["branch"], found["upstream"], found["ahead"], found["behind"]) == (
        "main",
        "origin/main",
        1,
        0,
    )
    assert found["commit"] == git("rev-parse", "HEAD", directory=work).strip()
    assert (found["detached"], found["clean"], found["truncated"]) == (False, False, False)
    assert sorted(found["entries"], key=lambda entry: entry["kind"]) == [
        {"path": "file.txt", "kind": "changed", "index": ".", "worktree": "M"},
        {
            "path": "renamed to.txt",
            "kind": "renamed",
            "index": "R",
            "worktree": ".",
            "originalPath": "new.txt",
        },
        {"path": "ünknown\n", "kind": "untracked", "index": ".", "worktree": "?"},
    ]


async def test_a_new_repository_has_a_branch_and_no_commit(ask: Ask, tmp_path: Path) -> None:
    found = await ask("init", cwd=f"{tmp_path}/fresh", branch="trunk")
    assert (found["branch"], found["detached"], "commit" in found) == ("trunk", False, False)
    found = await ask("status", cwd=f"{tmp_path}/fresh")
    assert (found["branch"], found["clean"], found["entries"]) == ("trunk", True, [])
    assert (await ask("log", cwd=f"{tmp_path}/fresh"))["commits"] == []
    assert (await ask("branches", cwd=f"{tmp_path}/fresh"))["branches"] == []


async def test_status_in_a_subdirectory_is_of_the_whole_repository(ask: Ask, work: Path) -> None:
    (work / "sub").mkdir()
    (work / "sub/x").write_text("")
    found = await ask("status", cwd=f"{work}/sub", untracked="all")
    assert [entry["path"] for entry in found["entries"]] == ["sub/x"]
    assert (await ask("status", cwd=str(work), untracked="no"))["clean"]


async def test_outside_of_a_repository_there_is_none(ask: Ask, tmp_path: Path) -> None:
    for operation in ("status", "log", "diff", "branches"):
        found = await ask(operation, cwd=str(tmp_path), expect=404)
        assert found["code"] == "GIT_REPOSITORY_NOT_FOUND", found
        assert found["context"]["repository"] == str(tmp_path)


async def test_a_directory_that_is_not_there_is_the_files_error(ask: Ask, work: Path) -> None:
    assert (await ask("status", cwd=f"{work}/none", expect=404))["code"] == "FILE_NOT_FOUND"
    assert (await ask("status", cwd=f"{work}/file.txt", expect=400))["code"] == "NOT_DIRECTORY"
    assert (await ask("status", cwd="a\0", expect=400))["code"] == "VALIDATION_FAILED"


async def test_a_diff_is_a_patch_of_what_is_asked_for(ask: Ask, work: Path) -> None:
    (work / "file.txt").write_text("staged\n")
    git("add", "file.txt", directory=work)
    (work / "new.txt").write_text("not staged\n")
    plain = (await ask("diff", cwd=str(work)))["diff"]
    assert ("+not staged" in plain, "+staged" in plain) == (True, False)
    staged = (await ask("diff", cwd=str(work), staged=True))["diff"]
    assert ("+not staged" in staged, "+staged" in staged) == (False, True)
    both = (await ask("diff", cwd=str(work), ref="HEAD", paths=["file.txt"], contextLines=0))["diff"]
    assert ("+not staged" in both, "+staged" in both) == (False, True)
    since = (await ask("diff", cwd=str(work), ref="v1..main"))["diff"]
    assert "+line 2" in since


async def test_a_diff_is_bounded(ask: Ask, work: Path) -> None:
    (work / "file.txt").write_text("x" * 50_000)
    found = await ask("diff", cwd=str(work), maxBytes=1000)
    assert (len(found["diff"]), found["truncated"]) == (1000, True)


async def test_an_unknown_ref_is_a_missing_branch(ask: Ask, work: Path) -> None:
    for operation in ("diff", "log"):
        found = await ask(operation, cwd=str(work), ref="nope", expect=404)
        assert (found["code"], found["context"]["branch"]) == ("GIT_BRANCH_NOT_FOUND", "nope")


@pytest.mark.parametrize("name", ["--output=/tmp/x", "-x", "a\0b", "a\nb", " "])
async def test_no_name_can_be_an_option(ask: Ask, work: Path, name: str) -> None:
    for operation, field in (
        ("diff", "ref"),
        ("log", "ref"),
        ("switch", "branch"),
        ("branch", "branch"),
        ("branch", "start"),
        ("push", "remote"),
        ("push", "branch"),
        ("pull", "remote"),
        ("fetch", "branch"),
        ("init", "branch"),
    ):
        fields = {"cwd": str(work), "branch": "x", field: name}
        found = await ask(operation, **fields, expect=400)
        assert found["code"] == "VALIDATION_FAILED", (operation, field)


async def test_paths_mean_themselves(ask: Ask, work: Path) -> None:
    (work / "*").write_text("star\n")
    (work / "other").write_text("")
    await ask("add", cwd=str(work), paths=["*"])
    found = await ask("status", cwd=str(work))
    assert {entry["path"]: entry["index"] for entry in found["entries"]} == {"*": "A", "other": "."}
    found = await ask("add", cwd=str(work), paths=["--all"], expect=404)
    assert (found["code"], found["context"]["path"]) == ("FILE_NOT_FOUND", "--all")
    assert (await ask("add", cwd=str(work), expect=400))["code"] == "VALIDATION_FAILED"


async def test_the_log_has_every_field_of_a_commit(ask: Ask, work: Path) -> None:
    found = await ask("log", cwd=str(work))
    assert [commit["subject"] for commit in found["commits"]] == [
        "Add a file",
        "Change 2",
        "Change 1",
        "Change 0",
    ]
    last = found["commits"][1]
    assert last["author"] | {"date": ""} == {"name": "A", "email": "a@example.com", "date": ""}
    assert last["body"] == "Why it changed."
    assert last["parents"] == [found["commits"][2]["commit"]]
    assert "tag: v1" in found["commits"][2]["refs"]
    page = await ask("log", cwd=str(work), limit=1, skip=1, paths=["file.txt"])
    assert [commit["subject"] for commit in page["commits"]] == ["Change 1"]
    other = await ask("log", cwd=str(work), ref="origin/other")
    assert [commit["subject"] for commit in other["commits"]] == ["Change 0"]


async def test_a_commit_by_an_author(ask: Ask, work: Path) -> None:
    (work / "file.txt").write_text("by ada\n")
    message = "-m: what it does\n\nÄnderung, weil es 'so' ist"
    found = await ask("commit", cwd=str(work), message=message, all=True, author=AUTHOR)
    assert (found["committed"], found["branch"]) == (True, "main")
    assert found["commit"] == git("rev-parse", "HEAD", directory=work).strip()
    last = (await ask("log", cwd=str(work), limit=1))["commits"][0]
    assert (last["author"]["name"], last["committer"]["email"]) == ("Ada", "ada@example.com")
    assert f"{last['subject']}\n\n{last['body']}" == message


async def test_a_commit_is_summed_up_whatever_it_changes(ask: Ask, work: Path) -> None:
    (work / "a new file").write_text("x")
    await ask("add", cwd=str(work), all=True)
    found = await ask("commit", cwd=str(work), message="One more", author=AUTHOR)
    assert found["summary"] == f"[main {found['commit'][:7]}] One more"


async def test_only_the_paths_that_are_named_are_committed(ask: Ask, work: Path) -> None:
    for name in ("file.txt", "new.txt"):
        (work / name).write_text("changed\n")
    await ask("commit", cwd=str(work), message="One", paths=["new.txt"], author=AUTHOR)
    found = await ask("status", cwd=str(work))
    assert [entry["path"] for entry in found["entries"]] == ["file.txt"]


async def test_nothing_to_commit_is_said(ask: Ask, work: Path) -> None:
    found = await ask("commit", cwd=str(work), message="None", author=AUTHOR)
    assert (found["committed"], found["summary"]) == (False, "nothing to commit, working tree clean")
    (work / "untracked").write_text("")
    found = await ask("commit", cwd=str(work), message="None", author=AUTHOR)
    assert found["committed"] is False
    assert found["summary"].startswith("nothing added to commit")
    found = await ask("commit", cwd=str(work), message="Empty", author=AUTHOR, allowEmpty=True)
    assert found["committed"]


async def test_who_commits_has_to_be_known(start: Callable[..., Runtime], work: Path, tmp_path: Path) -> None:
    config = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.useConfigOnly", "GIT_CONFIG_VALUE_0": "true"}
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", **config}
    runtime = start(environ=environ)
    body = {"cwd": str(work), "message": "x", "allowEmpty": True}
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.post("/api/git/commit", json=body) as response,
    ):
        found = await response.json()
    assert (response.status, found["code"]) == (400, "VALIDATION_FAILED")
    assert found["context"]["validationErrors"][0]["field"] == "author"
    assert "git config" in found["suggestion"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"message": " \n"},
        {"message": "a\0"},
        {"message": "ä" * 90_000},
        {"message": "x", "author": {"name": "A\n", "email": "x"}},
        {"message": "x", "author": {"name": "", "email": "x"}},
        {"message": "x", "paths": [""]},
    ],
)
async def test_what_cannot_be_committed_is_refused(ask: Ask, work: Path, fields: Json) -> None:
    assert (await ask("commit", cwd=str(work), **fields, expect=400))["code"] == "VALIDATION_FAILED"


async def test_a_hook_that_refuses_is_an_error_with_its_words(ask: Ask, work: Path) -> None:
    hook = work / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho this is not good enough >&2\nexit 1\n")
    hook.chmod(0o755)
    found = await ask("commit", cwd=str(work), message="x", allowEmpty=True, author=AUTHOR, expect=500)
    assert found["code"] == "GIT_OPERATION_FAILED"
    assert found["message"] == "this is not good enough"


async def test_branches_are_made_listed_and_switched(ask: Ask, work: Path) -> None:
    found = await ask("branch", cwd=str(work), branch="feature", start="v1")
    assert found["branch"] == "main"
    found = await ask("branch", cwd=str(work), branch="second", switch=True)
    assert found["branch"] == "second"
    found = await ask("switch", cwd=str(work), branch="feature")
    assert (found["branch"], found["commit"]) == ("feature", git("rev-parse", "v1", directory=work).strip())
    # One that only the remote has.
    assert (await ask("switch", cwd=str(work), branch="other"))["branch"] == "other"
    found = await ask("branches", cwd=str(work), remotes=True)
    by_name = {branch["name"]: branch for branch in found["branches"]}
    assert set(by_name) == {"main", "feature", "second", "other", "origin/main", "origin/other"}
    assert [name for name, branch in by_name.items() if branch["current"]] == ["other"]
    main = by_name["main"]
    assert (main["upstream"], main["ahead"], main["behind"], main["remote"]) == ("origin/main", 1, 0, False)
    assert by_name["origin/main"]["remote"]
    found = await ask("switch", cwd=str(work), branch="v1", detach=True)
    assert (found["detached"], "branch" in found) == (True, False)
    assert (await ask("status", cwd=str(work)))["detached"]


async def test_branches_that_cannot_be_have_their_codes(ask: Ask, work: Path) -> None:
    found = await ask("switch", cwd=str(work), branch="nope", expect=404)
    assert (found["code"], found["context"]["branch"]) == ("GIT_BRANCH_NOT_FOUND", "nope")
    found = await ask("branch", cwd=str(work), branch="x", start="nope", expect=404)
    assert found["code"] == "GIT_BRANCH_NOT_FOUND"
    found = await ask("branch", cwd=str(work), branch="a b", expect=400)
    assert found["context"]["validationErrors"][0]["field"] == "branch"
    for taken in ("main", "main/below"):
        found = await ask("branch", cwd=str(work), branch=taken, expect=400)
        assert "exists" in found["message"]
    found = await ask("init", cwd=f"{work}/file.txt/x", expect=409)
    assert (found["code"], found["context"]["path"]) == ("FILE_EXISTS", f"{work}/file.txt/x")


async def test_two_gits_at_once_do_not_wait_for_each_other(ask: Ask, work: Path) -> None:
    (work / ".git/index.lock").write_text("")
    found = await ask("add", cwd=str(work), all=True, expect=409)
    assert found["code"] == "RESOURCE_BUSY"
    assert "another git" in found["suggestion"]
    assert (await ask("status", cwd=str(work)))["branch"] == "main"


async def test_changes_in_the_way_of_a_switch_are_kept(ask: Ask, work: Path) -> None:
    (work / "file.txt").write_text("mine\n")
    found = await ask("switch", cwd=str(work), branch="other", expect=500)
    assert found["code"] == "GIT_CHECKOUT_FAILED"
    assert "commit or discard" in found["suggestion"]
    assert (work / "file.txt").read_text() == "mine\n"


async def test_a_timeout_ends_git(ask: Ask, work: Path) -> None:
    hook = work / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nsleep 30.5188\n")
    hook.chmod(0o755)
    found = await ask(
        "commit", cwd=str(work), message="x", allowEmpty=True, author=AUTHOR, timeoutMs=500, expect=500
    )
    assert "500 ms" in found["message"]


async def test_more_paths_than_linux_takes_are_refused(ask: Ask, work: Path) -> None:
    found = await ask("add", cwd=str(work), paths=["x" * 4000] * 40, expect=400)
    assert "128 KiB" in found["message"]


async def test_a_session_says_where_and_in_which_environment(
    ask: Ask, http: aiohttp.ClientSession, work: Path, bare: Path
) -> None:
    async def call(path: str, **fields: Any) -> None:
        async with http.post(path, json=fields) as response:
            assert response.status == 200, await response.text()

    author = "export GIT_AUTHOR_NAME=Grace GIT_AUTHOR_EMAIL=g@example.com"
    try:
        await call("/api/session/create", id="git", cwd=str(work.parent))
        await call("/api/execute", sessionId="git", command=f"{author}; cd {work.name}")
        assert (await ask("status", sessionId="git"))["branch"] == "main"
        committer = {"GIT_COMMITTER_NAME": "Grace", "GIT_COMMITTER_EMAIL": "g@example.com"}
        exports = " ".join(f"{name}={value}" for name, value in committer.items())
        await call("/api/execute", sessionId="git", command=f"export {exports}")
        await ask("commit", sessionId="git", message="By the session", allowEmpty=True)
        last = (await ask("log", sessionId="git", limit=1))["commits"][0]
        assert last["author"]["name"] == "Grace"
        await ask("checkout", sessionId="git", repoUrl="../project.git", targetDir="inner")
        assert (work / "inner/file.txt").exists()
    finally:
        await call("/api/session/delete", sessionId="git")


async def test_git_makes_no_session(ask: Ask, http: aiohttp.ClientSession, work: Path) -> None:
    await ask("status", cwd=str(work), sessionId="not-there")
    async with http.get("/api/session/list") as response:
        assert (await response.json())["data"] == []
