"""Files that are none, file systems that refuse, and names that are odd: never a hang, never a 500."""

import asyncio
import base64
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.runtime import Runtime, soon, unprivileged

Call = Callable[..., Any]
POSTS: list[tuple[str, dict[str, Any]]] = [
    ("read", {}),
    ("write", {"content": "x"}),
    ("files/append", {"content": "x"}),
    ("files/insert", {"content": "x", "line": 1}),
    ("files/replace", {"edits": [{"old": "a", "new": "b"}]}),
    ("delete", {}),
    ("mkdir", {}),
    ("exists", {}),
    ("list-files", {}),
    ("files/stat", {}),
    ("files/chmod", {"mode": "600"}),
    ("files/symlink", {"target": "x"}),
    ("files/uploads", {}),
]
CONTENTS = [post for post in POSTS if post[0] in ("read", "write", "files/append", "files/insert")]


@pytest.fixture
async def ordinary(start: Callable[..., Runtime]) -> AsyncIterator[tuple[Runtime, aiohttp.ClientSession]]:
    """A runtime of an ordinary user, as in a pod: root may write anywhere."""
    runtime = start(prefix=unprivileged())
    async with aiohttp.ClientSession(runtime.url) as http:
        yield runtime, http


async def post(http: aiohttp.ClientSession, endpoint: str, /, **fields: Any) -> tuple[int, dict[str, Any]]:
    async with http.post(f"/api/{endpoint}", json=fields) as response:
        return response.status, await response.json()


@pytest.mark.parametrize(("endpoint", "fields"), CONTENTS)
async def test_what_is_no_regular_file_is_refused_at_once(
    call: Call, runtime: Runtime, endpoint: str, fields: dict[str, Any]
) -> None:
    os.mkfifo(runtime.workspace / "fifo")
    (runtime.workspace / "link").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(runtime.workspace / "socket"))
        for path, kind in (("fifo", "FIFO"), ("link", "FIFO"), ("socket", "socket"), ("/dev/zero", "device")):
            async with asyncio.timeout(10):
                found = await call(endpoint, path=path, status=400, **fields)
            assert found["code"] == "VALIDATION_FAILED"
            assert kind in found["message"]
            assert found["context"]["path"] == path


async def test_writers_of_a_fifo_are_not_woken(call: Call, execute: Call, runtime: Runtime) -> None:
    os.mkfifo(runtime.workspace / "fifo")
    writing = asyncio.create_task(execute("echo x > fifo; echo woken", timeoutMs=400))
    while not writing.done():
        await call("read", path="fifo", status=400)
    assert writing.result()["exitCode"] == 124


async def test_dev_null_takes_everything_and_has_nothing(call: Call, http: aiohttp.ClientSession) -> None:
    assert (await call("read", path="/dev/null"))["content"] == ""
    await call("write", path="/dev/null", content="x" * 100_000)
    await call("files/append", path="/dev/null", content="x")
    async with http.put("/api/files/raw?path=/dev/null", data=b"x" * 100_000) as response:
        assert response.status == 200
    async with http.get("/api/files/raw?path=/dev/null") as response:
        assert await response.read() == b""
    assert (await call("files/stat", path="/dev/null"))["file"]["type"] == "other"


@pytest.mark.parametrize("name", ["mem", "environ", "maps", "oom_score_adj", "task/{pid}/mem"])
async def test_the_runtime_itself_is_no_file(call: Call, runtime: Runtime, name: str) -> None:
    name = name.format(pid=runtime.pid)
    (runtime.workspace / "trap").symlink_to(f"/proc/self/{name}")
    for path in ("trap", f"/proc/{runtime.pid}/{name}"):
        for endpoint, fields in CONTENTS:
            found = await call(endpoint, path=path, status=403, **fields)
            assert found["code"] == "PERMISSION_DENIED"


@pytest.mark.parametrize(("endpoint", "fields"), POSTS)
@pytest.mark.parametrize("path", [None, "", "a\0b", "x" * 4097, "é" * 2049])
async def test_a_path_that_cannot_be_one_is_refused(
    call: Call, endpoint: str, fields: dict[str, Any], path: str | None
) -> None:
    found = await call(endpoint, path=path, status=400, **fields)
    assert found["code"] == "VALIDATION_FAILED"
    [problem] = found["context"]["validationErrors"]
    assert (problem["field"], problem["code"]) == ("path", "INVALID_PATH")


@pytest.mark.parametrize(("endpoint", "fields"), POSTS)
async def test_a_name_that_is_too_long_is_called_that(
    call: Call, endpoint: str, fields: dict[str, Any]
) -> None:
    if endpoint == "exists":
        return
    for path in ("x" * 300, "/".join(["x" * 200] * 21)[:4096]):
        found = await call(endpoint, path=path, status=400, **fields)
        assert found["code"] == "NAME_TOO_LONG"


@pytest.mark.parametrize(("endpoint", "fields"), [each for each in POSTS if each[0] != "exists"])
async def test_links_in_a_circle_are_not_followed(
    call: Call, runtime: Runtime, endpoint: str, fields: dict[str, Any]
) -> None:
    (runtime.workspace / "a").symlink_to("b")
    (runtime.workspace / "b").symlink_to("a")
    found = await call(endpoint, path="a/file", status=500, **fields)
    assert found["code"] == "TOO_MANY_LINKS"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40),
    data=st.binary(max_size=300),
)
@example(name="a\nb\tc", data=b"\r\n")
@example(name="-rf", data=b"\xff")
@example(name="%2e%2e", data=b"")
@example(name="\u202e\udfff".encode("utf-8", "replace").decode(), data=b"")
async def test_any_bytes_come_back_from_a_file_of_any_name(runtime: Runtime, name: str, data: bytes) -> None:
    if name in (".", ".."):
        return
    path = f"{runtime.workspace}/{name}"
    encoded = base64.b64encode(data).decode()
    async with aiohttp.ClientSession(runtime.url) as http:
        status, _ = await post(http, "write", path=path, content=encoded, encoding="base64")
        assert status == 200
        _, found = await post(http, "read", path=path, encoding="base64")
        assert (found["path"], found["content"], found["size"]) == (path, encoded, len(data))
        async with http.get("/api/files/raw", params={"path": path}) as response:
            assert await response.read() == data
        async with http.put("/api/files/raw", params={"path": path}, data=data + b"!") as response:
            assert response.status == 200
        _, found = await post(http, "read", path=path, encoding="base64")
        assert base64.b64decode(found["content"]) == data + b"!"
        _, found = await post(http, "list-files", path=".", options={"includeHidden": True})
        assert [entry["name"] for entry in found["files"]] == [name]
        assert (await post(http, "delete", path=path))[0] == 200


async def test_what_is_forbidden_is_called_that(ordinary: tuple[Runtime, aiohttp.ClientSession]) -> None:
    runtime, http = ordinary
    secret = runtime.workspace / "secret"
    secret.mkdir(mode=0o700)
    (secret / "file").touch()
    (runtime.workspace / "unreadable").touch(mode=0o200)
    if os.geteuid() != 0:
        pytest.skip("needs files of somebody else")
    for endpoint, fields in POSTS:
        if endpoint == "exists":
            continue
        status, found = await post(http, endpoint, path=str(secret / "file"), **fields)
        assert (status, found["code"]) == (403, "PERMISSION_DENIED"), endpoint
        assert found["context"]["path"] == str(secret / "file")
    assert (await post(http, "read", path="unreadable"))[1]["code"] == "PERMISSION_DENIED"
    assert (await post(http, "write", path="/etc/new", content="x"))[1]["code"] == "PERMISSION_DENIED"
    assert (await post(http, "mkdir", path="/etc/a/b", recursive=True))[1]["code"] == "PERMISSION_DENIED"
    async with http.put("/api/files/raw?path=/etc/new", data=b"x") as response:
        assert response.status == 403


async def test_a_file_that_may_not_be_written_is_not_replaced_either(
    ordinary: tuple[Runtime, aiohttp.ClientSession],
) -> None:
    runtime, http = ordinary
    await post(http, "write", path="readonly", content="old", mode="444")
    if os.geteuid() == 0:
        status, _ = await post(http, "write", path="readonly", content="new")
        assert status == 403
        assert (runtime.workspace / "readonly").read_text() == "old"


async def test_a_file_in_a_directory_that_cannot_be_written_is_written_in_place(
    ordinary: tuple[Runtime, aiohttp.ClientSession],
) -> None:
    runtime, http = ordinary
    above = runtime.workspace / "fixed"
    above.mkdir()
    path = above / "open"
    path.write_text("a longer old content")
    path.chmod(0o666)
    above.chmod(0o755)
    if os.geteuid() != 0:
        above.chmod(0o555)
    inode = path.stat().st_ino
    assert (await post(http, "write", path=str(path), content="new"))[0] == 200
    assert (path.read_text(), path.stat().st_ino) == ("new", inode)
    async with http.put(f"/api/files/raw?path={path}", data=b"raw") as response:
        assert response.status == 200
    assert path.read_text() == "raw"
    above.chmod(0o755)


async def test_a_file_of_somebody_else_stays_theirs(ordinary: tuple[Runtime, aiohttp.ClientSession]) -> None:
    runtime, http = ordinary
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = runtime.workspace / "theirs"
    path.write_text("old content")
    path.chmod(0o666)
    assert (await post(http, "write", path="theirs", content="new"))[0] == 200
    assert (path.read_text(), path.stat().st_uid) == ("new", 0)


async def test_an_unreadable_directory_is_left_out_of_a_listing(
    ordinary: tuple[Runtime, aiohttp.ClientSession],
) -> None:
    runtime, http = ordinary
    (runtime.workspace / "open").mkdir()
    (runtime.workspace / "shut").mkdir(mode=0o000)
    (runtime.workspace / "open/file").touch()
    _, found = await post(http, "list-files", path=".", options={"recursive": True})
    assert [entry["relativePath"] for entry in found["files"]] == ["open", "open/file", "shut"]


def names_in(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()}


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


def unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    place = tmp_path / "small"
    place.mkdir()
    mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", place)
    try:
        yield place
    finally:
        unmount(place)


async def test_on_a_full_disk_nothing_changes_and_nothing_is_left(
    call: Call, http: aiohttp.ClientSession, small_disk: Path
) -> None:
    (small_disk / "file").write_text("old\n")
    large = "x" * 200_000
    for endpoint, fields in (
        ("write", {"content": large}),
        ("files/append", {"content": large}),
        ("files/insert", {"content": large, "line": 1}),
        ("files/replace", {"edits": [{"old": "old", "new": large}]}),
    ):
        found = await call(endpoint, path=f"{small_disk}/file", status=500, **fields)
        assert found["code"] == "NO_SPACE"
        assert found["context"]["path"] == f"{small_disk}/file"
    async with http.put(f"/api/files/raw?path={small_disk}/file", data=large.encode()) as response:
        assert (await response.json())["code"] == "NO_SPACE"
    (small_disk / "other").write_bytes(bytes(40_000))
    found = await call(
        "files/copy", sourcePath=f"{small_disk}/other", destinationPath=f"{small_disk}/third", status=500
    )
    assert found["code"] == "NO_SPACE"
    assert (small_disk / "file").read_text() == "old\n"
    assert names_in(small_disk) == {"file", "other"}


async def test_on_a_full_disk_a_file_of_two_names_keeps_its_content(call: Call, small_disk: Path) -> None:
    """It is written in place, as only that leaves both names with the same content."""
    (small_disk / "file").write_text("old\n")
    (small_disk / "other").hardlink_to(small_disk / "file")
    found = await call("write", path=f"{small_disk}/file", content="x" * 200_000, status=500)
    assert found["code"] == "NO_SPACE"
    assert (small_disk / "other").read_text() == "old\n"


async def test_a_read_only_file_system_is_called_that(call: Call, small_disk: Path) -> None:
    (small_disk / "file").write_text("abc")
    mount("-o", "remount,ro", small_disk)
    for endpoint, fields in POSTS:
        if endpoint in ("read", "exists", "list-files", "files/stat"):
            continue
        path = f"{small_disk}/{'new' if endpoint in ('mkdir', 'files/symlink') else 'file'}"
        found = await call(endpoint, path=path, status=403, **fields)
        assert found["code"] == "READ_ONLY", endpoint


async def test_a_mounted_file_is_written_in_place(call: Call, runtime: Runtime, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    (tmp_path / "outside").write_text("a longer old content")
    (runtime.workspace / "mounted").touch()
    mount("--bind", tmp_path / "outside", runtime.workspace / "mounted")
    try:
        await call("write", path="mounted", content="new")
        assert (tmp_path / "outside").read_text() == "new"
    finally:
        unmount(runtime.workspace / "mounted")


async def test_a_running_program_can_be_replaced(call: Call, execute: Call, runtime: Runtime) -> None:
    program = runtime.workspace / "program"
    shutil.copy("/bin/sleep", program)
    running = asyncio.create_task(execute("exec ./program 60.0321"))
    await soon(lambda: any("60.0321" in line for line in runtime.descendants().values()))
    await call("write", path="program", content="#!/bin/sh\n")
    runtime.end_descendants()
    await running
    assert program.stat().st_mode & 0o777 == 0o755
