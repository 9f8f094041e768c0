"""Directories, links, moves, copies, deletions and rights."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.runtime import Runtime

Call = Callable[..., Any]


async def test_a_file_and_a_dangling_link_are_deleted(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "file").touch()
    (runtime.workspace / "link").symlink_to("nowhere")
    for path in ("file", "link"):
        assert (await call("delete", path=path))["path"] == path
        found = await call("delete", path=path, status=404)
        assert found["code"] == "FILE_NOT_FOUND"
        assert "not found" in found["message"]


async def test_a_directory_is_deleted_only_with_recursive(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "top/sub").mkdir(parents=True)
    (runtime.workspace / "top/sub/file").touch()
    (runtime.workspace / "top/.hidden").touch()
    found = await call("delete", path="top", status=400)
    assert found["code"] == "IS_DIRECTORY"
    assert "Cannot delete directory" in found["message"]
    assert "deleteFile()" in found["message"]
    await call("delete", path="top", recursive=True)
    assert not (runtime.workspace / "top").exists()


@pytest.mark.parametrize("path", ["top/.", "top/./", "top/sub/.."])
async def test_a_directory_that_is_not_named_is_left_whole(call: Call, runtime: Runtime, path: str) -> None:
    (runtime.workspace / "top/sub").mkdir(parents=True, exist_ok=True)
    (runtime.workspace / "top/sub/file").touch()
    found = await call("delete", path=path, recursive=True, status=400)
    assert found["code"] == "VALIDATION_FAILED"
    assert (runtime.workspace / "top/sub/file").exists()


async def test_the_root_directory_is_not_deleted(call: Call) -> None:
    for path in ("/", "//", "/tmp/.."):
        found = await call("delete", path=path, recursive=True, status=400)
        assert found["code"] == "VALIDATION_FAILED"


@pytest.mark.parametrize(
    ("endpoint", "source", "target"),
    [
        ("rename", "oldPath", "newPath"),
        ("move", "sourcePath", "destinationPath"),
        ("files/copy", "sourcePath", "destinationPath"),
    ],
)
class TestMoving:
    async def test_a_file_gets_another_name(
        self, call: Call, runtime: Runtime, endpoint: str, source: str, target: str
    ) -> None:
        (runtime.workspace / "-old").write_text("content")
        (runtime.workspace / "overwritten").write_text("old")
        fields = {source: "-old", target: "overwritten"}
        found = await call(endpoint, **fields)
        assert (found["path"], found["newPath"]) == ("-old", "overwritten")
        assert (runtime.workspace / "overwritten").read_text() == "content"
        assert (runtime.workspace / "-old").exists() is (endpoint == "files/copy")

    async def test_an_existing_directory_is_what_it_goes_into(
        self, call: Call, runtime: Runtime, endpoint: str, source: str, target: str
    ) -> None:
        (runtime.workspace / "into").mkdir(exist_ok=True)
        (runtime.workspace / "file").write_text("content")
        await call(endpoint, **{source: "file", target: "into"})
        assert (runtime.workspace / "into/file").read_text() == "content"

    async def test_a_missing_source_and_a_missing_directory_are_not_found(
        self, call: Call, runtime: Runtime, endpoint: str, source: str, target: str
    ) -> None:
        found = await call(endpoint, status=404, **{source: "missing", target: "x"})
        assert found["code"] == "FILE_NOT_FOUND"
        assert "not found" in found["message"]
        assert found["context"]["path"] == "missing"
        assert found["context"]["operation"] == found["operation"]
        (runtime.workspace / "file").touch()
        found = await call(endpoint, status=404, **{source: "file", target: "no/such/x"})
        assert str(runtime.workspace / "no/such") in found["message"]

    async def test_a_directory_does_not_go_into_itself(
        self, call: Call, runtime: Runtime, endpoint: str, source: str, target: str
    ) -> None:
        (runtime.workspace / "tree/sub").mkdir(parents=True, exist_ok=True)
        more = {"recursive": True} if endpoint == "files/copy" else {}
        for destination in ("tree/sub", "tree/sub/new", "tree/../tree/sub/new", "tree"):
            found = await call(endpoint, status=400, **{source: "tree", target: destination}, **more)
            assert found["code"] == "VALIDATION_FAILED"
        assert list((runtime.workspace / "tree/sub").iterdir()) == []

    async def test_a_directory_does_not_take_the_place_of_another_one(
        self, call: Call, runtime: Runtime, endpoint: str, source: str, target: str
    ) -> None:
        (runtime.workspace / "a/inner").mkdir(parents=True, exist_ok=True)
        (runtime.workspace / "b/a/full").mkdir(parents=True, exist_ok=True)
        more = {"recursive": True} if endpoint == "files/copy" else {}
        found = await call(endpoint, status=409, **{source: "a", target: "b"}, **more)
        assert found["code"] == "FILE_EXISTS"
        (runtime.workspace / "plain").touch()
        found = await call(endpoint, status=400, **{source: "a", target: "plain"}, **more)
        assert found["code"] == "NOT_DIRECTORY"

    @pytest.mark.parametrize("path", [None, "", "a\0b"])
    async def test_both_paths_are_checked(
        self, call: Call, endpoint: str, source: str, target: str, path: str | None
    ) -> None:
        for bad, good in ((source, target), (target, source)):
            found = await call(endpoint, status=400, **{bad: path, good: "x"})
            [problem] = found["context"]["validationErrors"]
            assert (problem["field"], problem["code"]) == (bad, "INVALID_PATH")


async def test_a_file_that_is_moved_to_its_other_name_has_only_that(call: Call, runtime: Runtime) -> None:
    """The kernel's rename does nothing here, and says that it worked."""
    (runtime.workspace / "one").write_text("content")
    (runtime.workspace / "two").hardlink_to(runtime.workspace / "one")
    await call("move", sourcePath="one", destinationPath="two")
    assert not (runtime.workspace / "one").exists()
    await call("move", sourcePath="two", destinationPath="./two")
    assert (runtime.workspace / "two").read_text() == "content"


async def test_a_directory_is_copied_only_with_recursive(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "from/sub").mkdir(parents=True)
    (runtime.workspace / "from/sub/file").write_text("content")
    (runtime.workspace / "from/link").symlink_to("/etc")
    fields = {"sourcePath": "from", "destinationPath": "to"}
    assert (await call("files/copy", status=400, **fields))["code"] == "IS_DIRECTORY"
    await call("files/copy", recursive=True, **fields)
    assert (runtime.workspace / "to/sub/file").read_text() == "content"
    assert (runtime.workspace / "to/link").readlink() == Path("/etc")


async def test_mkdir_makes_one_directory_or_all(call: Call, runtime: Runtime) -> None:
    found = await call("mkdir", path="x/y/z", status=404)
    assert found["operation"] == "directory.create"
    found = await call("mkdir", path="x/y/z", recursive=True)
    assert found["recursive"] is True
    await call("mkdir", path="x/y/z", recursive=True)
    assert (await call("mkdir", path="x/y/z", status=409))["code"] == "FILE_EXISTS"
    found = await call("mkdir", path="x/secret", mode="700")
    assert found["recursive"] is False
    assert (runtime.workspace / "x/secret").stat().st_mode & 0o7777 == 0o700
    (runtime.workspace / "plain").touch()
    assert (await call("mkdir", path="plain", recursive=True, status=409))["code"] == "FILE_EXISTS"
    assert (await call("mkdir", path="plain/x", recursive=True, status=400))["code"] == "NOT_DIRECTORY"


async def test_exists_follows_links(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "there").mkdir()
    (runtime.workspace / "good").symlink_to("there")
    (runtime.workspace / "bad").symlink_to("nowhere")
    for path, exists in (("there", True), ("good", True), ("bad", False), ("x" * 300, False), ("/", True)):
        found = await call("exists", path=path)
        assert (found["path"], found["exists"]) == (path, exists)


async def test_stat_tells_all(call: Call, runtime: Runtime) -> None:
    path = runtime.workspace / "file"
    path.write_text("12345")
    path.chmod(0o4750)
    (runtime.workspace / "link").symlink_to("file")
    found = await call("files/stat", path="file")
    entry = found["file"]
    assert (entry["type"], entry["size"], entry["mode"]) == ("file", 5, "rwxr-x---")
    assert (entry["octal"], entry["uid"], found["links"]) == ("4750", os.geteuid(), 1)
    assert entry["absolutePath"] == str(path)
    assert found["inode"] == path.stat().st_ino
    found = await call("files/stat", path="link")
    assert (found["file"]["type"], found["file"]["target"]) == ("symlink", "file")
    found = await call("files/stat", path="link", follow=True)
    assert (found["file"]["type"], found["file"]["size"]) == ("file", 5)
    assert (await call("files/stat", path="missing", status=404))["operation"] == "file.stat"


async def test_chmod_changes_a_file_or_a_tree(call: Call, runtime: Runtime) -> None:
    top = runtime.workspace / "top"
    (top / "sub").mkdir(parents=True)
    (top / "sub/file").touch()
    outside = runtime.workspace / "outside"
    outside.touch(0o640)
    (top / "link").symlink_to("../outside")
    assert (await call("files/chmod", path="top/sub/file", mode="600"))["mode"] == "0600"
    assert (top / "sub/file").stat().st_mode & 0o777 == 0o600
    for mode in ("755", "000", "711"):
        assert (await call("files/chmod", path="top", mode=mode, recursive=True))["changed"] == 3
    assert (top / "sub/file").stat().st_mode & 0o777 == 0o711
    assert outside.stat().st_mode & 0o777 == 0o640


async def test_a_symbolic_link_holds_what_is_given(call: Call, runtime: Runtime) -> None:
    await call("files/symlink", path="link", target="../anything at all")
    assert (runtime.workspace / "link").readlink() == Path("../anything at all")
    found = await call("files/symlink", path="link", target="/etc", status=409)
    assert found["code"] == "FILE_EXISTS"
    assert str(runtime.workspace / "link") in found["message"]
    assert (await call("files/symlink", path="other", target="", status=400))["code"] == "VALIDATION_FAILED"
