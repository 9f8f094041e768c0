"""Cloning: `/api/git/checkout`."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_server import GitServer, git
from tests.support.runtime import Runtime

Json = dict[str, Any]
Ask = Callable[..., Any]


async def test_a_clone_answers_with_the_fields_of_the_protocol(ask: Ask, bare: Path, target: Path) -> None:
    found = await ask("checkout", repoUrl=f"file://{bare}", targetDir=str(target))
    assert found.pop("timestamp")
    assert found == {
        "success": True,
        "repoUrl": f"file://{bare}",
        "branch": "main",
        "targetDir": str(target),
    }
    assert (target / "file.txt").read_text() == "line 2\n" * 3


async def test_depth_one_is_one_commit(ask: Ask, bare: Path, target: Path) -> None:
    await ask("checkout", repoUrl=f"file://{bare}", targetDir=str(target), depth=1)
    assert git("rev-list", "--count", "HEAD", directory=target).strip() == "1"


async def test_a_branch_may_be_a_tag(ask: Ask, bare: Path, target: Path) -> None:
    found = await ask("checkout", repoUrl=str(bare), targetDir=str(target), branch="v1")
    assert found["branch"] == "v1"
    assert (target / "file.txt").read_text() == "line 1\n" * 3


async def test_another_branch_is_checked_out_by_its_name(ask: Ask, bare: Path, target: Path) -> None:
    found = await ask("checkout", repoUrl=str(bare), targetDir=str(target), branch="other")
    assert found["branch"] == "other"


async def test_a_repository_whose_head_is_no_branch_is_unknown(ask: Ask, bare: Path, target: Path) -> None:
    git("update-ref", "--no-deref", "HEAD", "v1^{commit}", directory=bare)
    shutil.rmtree(bare.parent / "project.git-work")
    head = git("rev-parse", "v1", directory=bare)
    (bare / "HEAD").write_text(head)
    found = await ask("checkout", repoUrl=str(bare), targetDir=str(target))
    assert found["branch"] == "unknown"


async def test_the_default_target_is_the_repositorys_name_in_the_workspace(
    ask: Ask, bare: Path, runtime: Runtime
) -> None:
    place = runtime.workspace / "project"
    try:
        found = await ask("checkout", repoUrl=f"  {bare}/  ")
        assert found["targetDir"] == str(place)
        assert found["repoUrl"] == f"  {bare}/  "
        assert (place / "file.txt").exists()
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def test_a_relative_target_is_below_the_workspace_and_echoed_as_it_was(
    ask: Ask, bare: Path, runtime: Runtime
) -> None:
    try:
        found = await ask("checkout", repoUrl=str(bare), targetDir="deep/er")
        assert found["targetDir"] == "deep/er"
        assert (runtime.workspace / "deep/er/file.txt").exists()
    finally:
        shutil.rmtree(runtime.workspace / "deep", ignore_errors=True)


async def test_the_disable_token_is_no_session(ask: Ask, bare: Path, target: Path) -> None:
    await ask("checkout", repoUrl=str(bare), targetDir=str(target), sessionId="__DISABLE_SESSION__")


async def test_old_versions_of_files_stay_at_the_server(ask: Ask, server: GitServer, target: Path) -> None:
    await ask("checkout", repoUrl=f"{server.url}/project.git", targetDir=str(target))
    missing = git("rev-list", "--objects", "--missing=print", "--all", directory=target)
    assert missing.count("?") == 2
    shutil.rmtree(target)
    await ask("checkout", repoUrl=f"{server.url}/project.git", targetDir=str(target), partial=False)
    assert "?" not in git("rev-list", "--objects", "--missing=print", "--all", directory=target)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "  ",
        None,
        "https://h.example/" + "a" * 2048,
        "https://h.example/a\0b",
        "https://h.example/a\nb",
        "-oProxyCommand=touch /tmp/x",
        "--upload-pack=touch /tmp/x",
        "ext::sh -c touch% /tmp/x",
        "fd::17",
        "ftp://h.example/a",
        "javascript://h.example/a",
    ],
)
async def test_what_is_no_address_of_a_repository_is_refused(ask: Ask, url: str | None) -> None:
    found = await ask("checkout", repoUrl=url, targetDir="nowhere", expect=400)
    assert found["code"] == "INVALID_GIT_URL"
    assert found["context"]["validationErrors"][0]["field"] == "repoUrl"


@pytest.mark.parametrize("timeout", [0, -5, 1.5, 1e300])
async def test_a_bad_timeout_is_named(ask: Ask, timeout: float) -> None:
    found = await ask("checkout", repoUrl="/x", timeoutMs=timeout, expect=400)
    assert found["code"] == "VALIDATION_FAILED"
    assert f"Invalid clone timeout: {timeout:g}" in found["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"branch": "--upload-pack=x"},
        {"branch": "a\0b"},
        {"depth": 0},
        {"depth": -1},
        {"depth": "1"},
        {"timeoutMs": "soon"},
        {"targetDir": "a\0b"},
        {"targetDir": "x" * 5000},
        {"sessionId": "  "},
        {"token": "x"},
        {"username": "x"},
        {"password": "x"},
    ],
)
async def test_bad_fields_are_refused(ask: Ask, bare: Path, fields: Json) -> None:
    found = await ask(
        "checkout", **{"repoUrl": str(bare), "targetDir": "/nowhere/at/all", **fields}, expect=400
    )
    assert found["code"] == "VALIDATION_FAILED"
