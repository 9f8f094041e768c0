"""`/api/list-files`, also against os.walk."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.runtime import Runtime

Call = Callable[..., Any]
names = st.text("ab.é\n\t \\\"'", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
trees = st.recursive(st.none(), lambda below: st.dictionaries(names, below, max_size=3), max_leaves=8).filter(
    lambda tree: isinstance(tree, dict)
)


async def test_an_entry_has_all_fields(call: Call, runtime: Runtime) -> None:
    path = runtime.workspace / "src/a.py"
    path.parent.mkdir()
    path.write_text("12345")
    path.chmod(0o4750)
    found = await call("list-files", path=".", options={"recursive": True})
    assert (found["path"], found["count"], "truncated" in found) == (".", 2, False)
    [_, entry] = found["files"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("modifiedAt"))
    assert entry.pop("owner")
    assert entry.pop("group")
    assert entry == {
        "name": "a.py",
        "absolutePath": str(path),
        "relativePath": "src/a.py",
        "type": "file",
        "size": 5,
        "mode": "rwxr-x---",
        "octal": "4750",
        "permissions": {"readable": True, "writable": True, "executable": True},
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "hidden": False,
    }


async def test_every_kind_is_named_and_links_are_not_followed(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "d/below").mkdir(parents=True)
    (runtime.workspace / "f").touch()
    (runtime.workspace / "l").symlink_to("d")
    os.mkfifo(runtime.workspace / "p")
    found = await call("list-files", path=str(runtime.workspace), options={"recursive": True})
    kinds = {entry["relativePath"]: entry["type"] for entry in found["files"]}
    assert kinds == {"d": "directory", "d/below": "directory", "f": "file", "l": "symlink", "p": "other"}
    [link] = [entry for entry in found["files"] if entry["name"] == "l"]
    assert (link["target"], link["size"]) == ("d", 1)


async def test_hidden_entries_come_only_when_wanted(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / ".git").mkdir()
    (runtime.workspace / ".git/config").touch()
    (runtime.workspace / ".env").touch()
    (runtime.workspace / "seen").touch()

    async def listed(**options: bool) -> set[str]:
        found = await call("list-files", path=".", options=options)
        return {entry["relativePath"] for entry in found["files"]}

    assert await listed() == {"seen"}
    assert await listed(includeHidden=True) == {"seen", ".git", ".env"}
    # As 0.12: the filter looks at an entry's own name only.
    assert await listed(recursive=True) == {"seen", ".git/config"}


async def test_a_link_to_a_directory_lists_its_target(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "d").mkdir()
    (runtime.workspace / "d/file").touch()
    (runtime.workspace / "l").symlink_to("d")
    [entry] = (await call("list-files", path="l"))["files"]
    assert entry["absolutePath"] == str(runtime.workspace / "l/file")


async def test_a_file_and_a_missing_path_are_no_directories(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "file").touch()
    found = await call("list-files", path="file", status=400)
    assert found["code"] == "NOT_DIRECTORY"
    assert "not a directory" in found["message"].lower()
    found = await call("list-files", path="missing", status=404)
    assert (found["code"], found["operation"]) == ("FILE_NOT_FOUND", "directory.list")


async def test_names_that_are_not_utf_8_are_shown(call: Call, runtime: Runtime) -> None:
    os.close(os.open(bytes(runtime.workspace) + b"/a\xff\n\t", os.O_CREAT))
    [entry] = (await call("list-files", path="."))["files"]
    assert entry["name"] == entry["relativePath"] == "a\ufffd\n\t"


async def test_a_long_listing_is_complete_or_says_that_it_is_not(call: Call, runtime: Runtime) -> None:
    for number in range(1203):
        (runtime.workspace / f"{number:04}").touch()
    found = await call("list-files", path=".")
    assert [entry["name"] for entry in found["files"]] == [f"{number:04}" for number in range(1203)]
    assert (found["count"], "truncated" in found) == (1203, False)
    for limit in (1, 500, 1000, 1202):
        found = await call("list-files", path=".", options={"limit": limit})
        assert (len(found["files"]), found["count"], found["truncated"]) == (limit, limit, True)
    assert "truncated" not in await call("list-files", path=".", options={"limit": 1203})


async def test_a_file_from_an_impossible_year_is_listed(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "old").touch()
    for seconds in (-(10**11), 2**60):
        os.utime(runtime.workspace / "old", (seconds, seconds))
        [entry] = (await call("list-files", path="."))["files"]
        assert entry["modifiedAt"].endswith("Z")
        assert (await call("read", path="old"))["content"] == ""


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 10**7}, {"recursive": 1}, []])
async def test_options_that_make_no_sense_are_refused(call: Call, options: Any) -> None:
    assert (await call("list-files", path=".", options=options, status=400))["code"] == "VALIDATION_FAILED"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
async def test_a_listing_is_what_os_walk_finds(runtime: Runtime, tree: dict[str, Any]) -> None:
    top = runtime.workspace / "walked"
    build(top, tree)
    try:
        async with (
            aiohttp.ClientSession(runtime.url) as http,
            http.post(
                "/api/list-files",
                json={"path": "walked", "options": {"recursive": True, "includeHidden": True}},
            ) as response,
        ):
            files = (await response.json())["files"]
        expected: set[tuple[str, str]] = set()
        for above, directories, plain in os.walk(top):
            expected |= {(f"{above}/{name}", "directory") for name in directories}
            expected |= {(f"{above}/{name}", "file") for name in plain}
        assert {(entry["absolutePath"], entry["type"]) for entry in files} == expected
        assert len(files) == len(expected)
        assert all(f"{top}/{entry['relativePath']}" == entry["absolutePath"] for entry in files)
    finally:
        remove(top)


def build(path: Path, tree: dict[str, Any] | None) -> None:
    if tree is None:
        path.touch()
        return
    path.mkdir()
    for name, below in tree.items():
        build(path / name, below)


def remove(path: Path) -> None:
    if not path.is_dir():
        path.unlink()
        return
    for each in path.iterdir():
        remove(each)
    path.rmdir()
