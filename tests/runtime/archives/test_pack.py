"""A directory out as one stream."""

import io
import os
import socket
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.archives import run, tree
from tests.support.runtime import Runtime, soon


async def fetched(http: aiohttp.ClientSession, **query: Any) -> bytes:
    async with http.get("/api/files/archive", params=query) as response:
        data = await response.read()
        assert response.status == 200, data
        return data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with everything in it."""
    root = tmp_path / "from"
    (root / "d/empty").mkdir(parents=True)
    (root / "d/run.sh").write_text("#!/bin/sh\n")
    (root / "d/run.sh").chmod(0o750)
    (root / ("n" * 200)).mkdir()
    (root / ("n" * 200) / ("m" * 200)).write_bytes(os.urandom(100_000))
    (root / "ä ö").write_text("hällo")
    (root / "big").write_bytes(b"0123456789" * 300_000)
    (root / "link").symlink_to("d/run.sh")
    (root / "dangling").symlink_to("/nowhere/at/all")
    os.link(root / "big", root / "d/second name")
    os.utime(root / "big", ns=(1, 1_234_567_890_123_456_789))
    return root


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
async def test_tar_unpacks_what_was_packed(
    http: aiohttp.ClientSession, root: Path, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "a").write_bytes(await fetched(http, path=str(root), format=kind))
    (tmp_path / "to").mkdir()
    run("tar", "-xpf", tmp_path / "a", "-C", tmp_path / "to")
    assert tree(tmp_path / "to") == tree(root)
    assert (tmp_path / "to/big").samefile(tmp_path / "to/d/second name")


async def test_a_zip_has_everything_too(http: aiohttp.ClientSession, root: Path) -> None:
    data = await fetched(http, path=str(root), format="zip")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        assert archive.getinfo("d/run.sh").external_attr >> 16 == 0o100750
        assert archive.read("big") == archive.read("d/second name") == b"0123456789" * 300_000
    assert {name.rstrip("/") for name in names} == set(tree(root))


async def test_a_single_file_is_an_archive_of_itself(http: aiohttp.ClientSession, root: Path) -> None:
    data = await fetched(http, path=str(root / "link"), format="tar")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["link"]
        assert archive.getmember("link").isfile()


async def test_patterns_leave_things_out(http: aiohttp.ClientSession, root: Path) -> None:
    query = [
        ("path", str(root)),
        ("format", "tar"),
        ("exclude", "d/"),
        ("exclude", "n*"),
        ("exclude", "/big"),
    ]
    async with http.get("/api/files/archive", params=query) as response:
        with tarfile.open(fileobj=io.BytesIO(await response.read())) as archive:
            assert set(archive.getnames()) == {"ä ö", "link", "dangling"}


async def test_what_is_no_file_is_left_out_and_never_waited_for(
    http: aiohttp.ClientSession, runtime: Runtime, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        (tmp_path / "file").write_text("x")
        data = await fetched(http, path=str(tmp_path), format="tar")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["file"]
    assert runtime.logged("sent an archive")[-1]["skipped"] == 2


async def test_a_relative_path_starts_from_the_workspace(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    (runtime.workspace / "packed").mkdir(exist_ok=True)
    (runtime.workspace / "packed/a").write_text("a")
    data = await fetched(http, path="packed", format="tar")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["a"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"path": "/no/such/place"}, 404, "FILE_NOT_FOUND"),
        ({}, 400, "VALIDATION_FAILED"),
        ({"path": ""}, 400, "VALIDATION_FAILED"),
        ({"path": "/dev/zero"}, 400, "VALIDATION_FAILED"),
        ({"path": "/tmp", "format": "rar"}, 400, "VALIDATION_FAILED"),
        ({"path": "/tmp", "level": "10"}, 400, "VALIDATION_FAILED"),
        ({"path": "/tmp", "exclude": "[a"}, 400, "VALIDATION_FAILED"),
        ({"path": "/tmp", "exclude": "a" * 2000}, 400, "VALIDATION_FAILED"),
    ],
)
async def test_bad_requests_are_told_so(
    http: aiohttp.ClientSession, query: dict[str, str], status: int, code: str
) -> None:
    async with http.get("/api/files/archive", params=query) as response:
        body = await response.json()
        assert (response.status, body["code"]) == (status, code)


async def test_a_client_that_hangs_up_ends_the_packing(
    http: aiohttp.ClientSession, runtime: Runtime, tmp_path: Path
) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    before = runtime.memory()
    response = await http.get("/api/files/archive", params={"path": str(tmp_path), "format": "tar"})
    await response.content.readexactly(1_000_000)
    name = str(tmp_path / "huge")
    assert name in open_files(runtime)
    response.close()
    await soon(lambda: name not in open_files(runtime))
    assert runtime.memory() - before < 32


async def test_so_many_archives_may_be_packed_at_once(http: aiohttp.ClientSession, tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    query = {"path": str(tmp_path), "format": "tar"}
    running = [await http.get("/api/files/archive", params=query) for _ in range(8)]
    async with http.get("/api/files/archive", params=query) as response:
        body = await response.json()
        assert (response.status, body["code"]) == (409, "RESOURCE_BUSY")
        assert "8" in body["message"]
    for each in running:
        each.close()


def open_files(runtime: Runtime) -> set[str]:
    found: set[str] = set()
    for entry in Path(f"/proc/{runtime.pid}/fd").iterdir():
        try:
            found.add(str(entry.readlink()))
        except OSError:
            continue
    return found
