"""A directory into an archive file and back, as a 0.12 client does it."""

import asyncio
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.archives import file, link, names, run, tar, tree
from tests.support.runtime import Runtime, soon, unprivileged

Json = dict[str, Any]

PROTOCOLS = "/var/backups/a.sqsh"
PLACE = Path("/var/backups")
needs_place = pytest.mark.skipif(not os.access(PLACE, os.W_OK), reason="/var/backups cannot be written here")


@pytest.fixture
def archive(state: Path) -> Iterator[str]:
    """Where an archive may be written: below the runtime's state."""
    place = state / "backups"
    yield str(place / f"{uuid.uuid4()}.sqsh")
    if place.exists():
        assert [name for name in names(place) if name.startswith(".")] == []


@pytest.fixture
def root(runtime: Runtime) -> Iterator[Path]:
    """A tree with everything that an archive keeps, in the workspace."""
    root = runtime.workspace / f"tree-{uuid.uuid4().hex}"
    (root / "src/deep").mkdir(parents=True)
    (root / "src/run.sh").write_text("#!/bin/sh\n")
    (root / "src/run.sh").chmod(0o750)
    (root / "src/deep/ä ö").write_bytes(os.urandom(200_000))
    (root / ".hidden").write_text("hidden")
    (root / "link").symlink_to("src/run.sh")
    (root / "outside").symlink_to("/etc/passwd")
    (root / "empty").mkdir()
    (root / "locked").mkdir()
    (root / "locked/file").write_text("locked")
    (root / "locked").chmod(0o555)
    os.link(root / "src/run.sh", root / "same")
    os.utime(root / "src", ns=(1, 1_234_567_890_123_456_789))
    yield root
    (root / "locked").chmod(0o755)
    shutil.rmtree(root, ignore_errors=True)


def read(archive: str) -> bytes:
    return Path(archive).read_bytes()


def write(archive: str, data: bytes) -> None:
    Path(archive).write_bytes(data)


def inode_of(path: Path) -> int:
    return path.stat().st_ino


async def post(http: aiohttp.ClientSession, what: str, **body: Any) -> tuple[int, Json]:
    async with http.post(f"/api/backup/{what}", json=body) as response:
        return response.status, await response.json()


async def done(http: aiohttp.ClientSession, what: str, **body: Any) -> Json:
    status, answer = await post(http, what, **body)
    assert status == 200, answer
    return answer


async def test_a_restore_makes_the_directory_what_it_was(
    http: aiohttp.ClientSession, root: Path, archive: str
) -> None:
    before = tree(root)
    answer = await done(http, "create", dir=str(root), archivePath=archive, sessionId="__sandbox_backup_x")
    assert answer == {
        "success": True,
        "sizeBytes": len(read(archive)),
        "archivePath": archive,
    }
    inode = inode_of(root)
    (root / "src/run.sh").write_text("changed")
    (root / "src/new").write_text("new")
    shutil.rmtree(root / "empty")
    (root / "link").unlink()
    (root / "link").mkdir()
    answer = await done(http, "restore", dir=str(root), archivePath=archive)
    assert answer == {"success": True, "dir": str(root)}
    assert tree(root) == before
    assert (root / "same").samefile(root / "src/run.sh")
    # Whoever stands in it, or watches it, still does.
    assert inode_of(root) == inode


async def test_a_directory_that_is_gone_is_made_again(
    http: aiohttp.ClientSession, root: Path, archive: str
) -> None:
    before = tree(root)
    await done(http, "create", dir=str(root), archivePath=archive)
    other = root.parent / f"{root.name}-copy/below"
    await done(http, "restore", dir=str(other), archivePath=archive)
    assert tree(other) == before
    (other / "locked").chmod(0o755)
    shutil.rmtree(other.parent)


@needs_place
async def test_the_clients_own_way_works(http: aiohttp.ClientSession, root: Path) -> None:
    """It makes an archive in /var/backups, reads it out, and writes it back before it restores."""
    path = PLACE / f"{uuid.uuid4()}.sqsh"
    try:
        size = (await done(http, "create", dir=str(root), archivePath=str(path)))["sizeBytes"]
        async with http.post("/api/read", json={"path": str(path), "encoding": "base64"}) as response:
            content = (await response.json())["content"]
        path.unlink()
        body = {"path": str(path), "content": content, "encoding": "base64"}
        async with http.post("/api/write", json=body) as response:
            assert response.status == 200
        assert path.stat().st_size == size
        before = tree(root)
        await done(http, "restore", dir=str(root), archivePath=str(path))
        assert tree(root) == before
    finally:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "compression", [None, {}, {"format": "lz4"}, {"format": "zstd", "threads": 2}, {"format": "gzip"}]
)
async def test_every_format_of_the_protocol_is_taken(
    http: aiohttp.ClientSession, root: Path, archive: str, compression: Json | None
) -> None:
    await done(http, "create", dir=str(root), archivePath=archive, compression=compression)
    assert "src/deep/" in run("tar", "-tzf", archive).decode()


@pytest.mark.parametrize(
    ("excludes", "left"),
    [
        (["**/node_modules/**"], {"a.log", "src", "src/a.log", "src/x", "src/x/y", "src/x/y/z"}),
        (["*.log", "node_modules"], {"src", "src/x", "src/x/y", "src/x/y/z"}),
        (["src/**/y"], {"a.log", "node_modules", "node_modules/m", "src", "src/a.log", "src/x", "src/x/y",
                        "src/x/y/z"}),
        (["x/**/y", "!a"], {"a.log", "node_modules", "node_modules/m", "src", "src/a.log", "src/x"}),
    ],
)  # fmt: skip
async def test_excludes_match_at_any_depth(
    http: aiohttp.ClientSession, runtime: Runtime, archive: str, excludes: list[str], left: set[str]
) -> None:
    root = runtime.workspace / uuid.uuid4().hex
    for name in ("a.log", "src/a.log", "src/x/y/z", "node_modules/m"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    await done(http, "create", dir=str(root), archivePath=archive, excludes=excludes)
    listed = run("tar", "-tzf", archive).decode().split("\n")
    assert {name.rstrip("/") for name in listed if name} == left
    shutil.rmtree(root)


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "no git"])
async def test_what_git_ignores_is_left_out_when_wanted(
    start: Callable[..., Runtime], tmp_path: Path, with_git: bool
) -> None:
    environ = dict(os.environ) if with_git else {"PATH": "/nowhere"}
    runtime = start(environ=environ, arguments=["--state", str(tmp_path / "state")])
    root = runtime.workspace / "repository"
    run("git", "init", "-q", root)
    (root / ".gitignore").write_text("*.o\nbuild/\n")
    (root / "kept.o").write_text("tracked all the same")
    run("git", "-C", root, "add", "-f", "kept.o")
    (root / "build/deep").mkdir(parents=True)
    for name in ("a.c", "a.o", "build/deep/x"):
        (root / name).write_text("")
    archive = str(tmp_path / "state/backups/a")
    async with aiohttp.ClientSession(runtime.url) as http:
        await done(http, "create", dir=str(root), archivePath=archive, gitignore=True)
    listed = set(run("tar", "-tzf", archive).decode().split("\n"))
    assert {".gitignore", "a.c", ".git/HEAD"} <= listed
    assert not {"a.o", "build/", "build/deep/x"} & listed
    assert ("kept.o" in listed) is with_git


async def test_outside_a_repository_gitignore_means_nothing(
    http: aiohttp.ClientSession, root: Path, archive: str
) -> None:
    (root / ".gitignore").write_text("*\n")
    await done(http, "create", dir=str(root), archivePath=archive, gitignore=True)
    assert "src/run.sh" in run("tar", "-tzf", archive).decode()


async def test_a_damaged_archive_changes_nothing(
    http: aiohttp.ClientSession, root: Path, archive: str
) -> None:
    await done(http, "create", dir=str(root), archivePath=archive)
    whole = read(archive)
    before = tree(root)
    half = len(whole) // 2
    for damaged in (whole[:half], whole[:half] + b"\0" * 100 + whole[half + 100 :], b"", b"hsqs" + whole):
        write(archive, damaged)
        status, answer = await post(http, "restore", dir=str(root), archivePath=archive)
        assert (status, answer["code"], answer["operation"]) == (
            500,
            "BACKUP_RESTORE_FAILED",
            "backup.restore",
        )
        assert answer["context"]["dir"] == str(root)
        assert answer["context"]["backupId"] == Path(archive).stem
        assert tree(root) == before


async def test_an_archive_that_would_lead_outside_changes_nothing(
    http: aiohttp.ClientSession, root: Path, archive: str
) -> None:
    await done(http, "create", dir=str(root), archivePath=archive)
    before = tree(root)
    for members in ([file("../evil")], [link("l", ".."), file("l/evil")], [file("/tmp/evil")]):
        write(archive, tar(*members, zipped=True))
        status, answer = await post(http, "restore", dir=str(root), archivePath=archive)
        assert (status, answer["code"]) == (500, "BACKUP_RESTORE_FAILED"), answer
    assert tree(root) == before
    assert "evil" not in names(root.parent)


async def test_what_is_missing_is_told_so(http: aiohttp.ClientSession, root: Path, archive: str) -> None:
    status, answer = await post(http, "restore", dir=str(root), archivePath=archive)
    assert (status, answer["code"]) == (500, "BACKUP_RESTORE_FAILED")
    status, answer = await post(http, "create", dir=str(root / "nowhere"), archivePath=archive)
    assert (status, answer["code"], answer["operation"]) == (500, "BACKUP_CREATE_FAILED", "backup.create")
    status, answer = await post(http, "create", dir=str(root / ".hidden"), archivePath=archive)
    assert (status, answer["code"]) == (500, "BACKUP_CREATE_FAILED")
    assert Path(archive).name not in names(Path(archive).parent)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
async def test_a_file_that_cannot_be_read_fails_the_backup(
    start: Callable[..., Runtime], state: Path
) -> None:
    """Or a restore would remove it."""
    runtime = start(prefix=unprivileged(), arguments=["--state", f"{state}-unprivileged"])
    (runtime.workspace / "secret").write_text("root's")
    (runtime.workspace / "secret").chmod(0o600)
    archive = f"{state}-unprivileged/backups/a"
    async with aiohttp.ClientSession(runtime.url) as http:
        status, answer = await post(http, "create", dir=str(runtime.workspace), archivePath=archive)
    assert (status, answer["code"]) == (500, "BACKUP_CREATE_FAILED"), answer
    assert "secret" in answer["message"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become an ordinary user")
async def test_an_ordinary_user_can_restore_what_may_not_be_written(
    start: Callable[..., Runtime], state: Path
) -> None:
    runtime = start(prefix=unprivileged(), arguments=["--state", f"{state}-ordinary"])
    root, archive = str(runtime.workspace / "tree"), f"{state}-ordinary/backups/a"
    script = "mkdir -p tree/locked/in && echo x >tree/locked/in/f && chmod 555 tree/locked tree/locked/in"
    async with aiohttp.ClientSession(runtime.url) as http:
        async with http.post("/api/execute", json={"command": script}) as response:
            assert (await response.json())["exitCode"] == 0
        before = tree(Path(root))
        await done(http, "create", dir=root, archivePath=archive)
        for _ in range(2):
            await done(http, "restore", dir=root, archivePath=archive)
            assert tree(Path(root)) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a place that the runtime's user may not write")
async def test_a_place_that_cannot_be_written_comes_with_advice(start: Callable[..., Runtime]) -> None:
    runtime = start(prefix=unprivileged())
    async with aiohttp.ClientSession(runtime.url) as http:
        status, answer = await post(
            http, "create", dir=str(runtime.workspace), archivePath="/var/backups/a.sqsh"
        )
    assert (status, answer["code"]) == (500, "BACKUP_CREATE_FAILED")
    assert answer["message"] == "/var/backups: Permission denied"
    assert "/var/backups" in answer["suggestion"]


async def test_one_directory_has_one_backup_at_a_time(
    http: aiohttp.ClientSession, runtime: Runtime, archive: str
) -> None:
    root = runtime.workspace / uuid.uuid4().hex
    root.mkdir()
    with (root / "big").open("wb") as big:
        big.truncate(1 << 32)
    first = asyncio.create_task(post(http, "create", dir=str(root), archivePath=archive))
    place = Path(archive).parent
    await soon(lambda: place.exists() and names(place)[:1] != [] and names(place)[0].startswith(".sandpod-"))
    status, answer = await post(http, "restore", dir=str(root), archivePath=archive)
    assert (status, answer["code"]) == (409, "RESOURCE_BUSY")
    # A client that leaves ends it, and nothing of it is left.
    first.cancel()
    await soon(lambda: not any(name.startswith(".sandpod-") for name in names(place)))
    assert Path(archive).name not in names(place)
    shutil.rmtree(root)


@pytest.mark.parametrize(
    "fields",
    [
        {"dir": "/etc"},
        {"dir": "/workspaces"},
        {"dir": "/home/../etc"},
        {"dir": "workspace"},
        {"dir": "/tmp/\0"},
        {"dir": "/tmp/" + "x" * 4096},
        {"dir": None},
        {"dir": 5},
        {"archivePath": "/tmp/a"},
        {"archivePath": "/var/backups/"},
        {"archivePath": "/var/backups"},
        {"archivePath": "/var/backups/../a"},
        {"archivePath": "/var/backups/a\0"},
        {"archivePath": None},
        {"compression": {"format": "xz"}},
        {"compression": {"threads": 0}},
        {"compression": {"threads": 1.5}},
        {"compression": "gzip"},
        {"excludes": ["["]},
        {"excludes": "a"},
        {"gitignore": "yes"},
    ],
)
async def test_what_the_protocol_forbids_is_refused(http: aiohttp.ClientSession, fields: Json) -> None:
    body = {"dir": "/tmp/nothing-here", "archivePath": "/var/backups/a.sqsh", **fields}
    status, answer = await post(http, "create", **body)
    assert (status, answer["code"], answer["operation"]) == (400, "INVALID_BACKUP_CONFIG", "backup.create")
    assert answer["context"]["reason"]
    if set(fields) <= {"dir", "archivePath"}:
        status, answer = await post(http, "restore", **body)
        assert (status, answer["code"], answer["operation"]) == (
            400,
            "INVALID_BACKUP_CONFIG",
            "backup.restore",
        )


async def test_an_upload_is_left_to_the_client(http: aiohttp.ClientSession) -> None:
    part = {"partNumber": 1, "url": "https://bucket.example/part", "offset": 0, "size": 10}
    status, answer = await post(http, "upload-parts", archivePath=PROTOCOLS, parts=[part])
    assert (status, answer["httpStatus"]) == (404, 404)
    for wrong in (
        {"partNumber": 0},
        {"url": "http://bucket.example"},
        {"offset": -1},
        {"size": 0},
        {"size": "x"},
    ):
        parts = [part | wrong]
        status, answer = await post(http, "upload-parts", archivePath=PROTOCOLS, parts=parts)
        assert (status, answer["code"]) == (400, "INVALID_BACKUP_CONFIG")
    status, answer = await post(http, "upload-parts", archivePath=PROTOCOLS, parts=[])
    assert (status, answer["code"]) == (400, "INVALID_BACKUP_CONFIG")


async def test_a_blank_session_is_refused(http: aiohttp.ClientSession) -> None:
    status, answer = await post(http, "create", dir="/tmp/x", archivePath="/var/backups/a", sessionId=" ")
    assert (status, answer["code"]) == (400, "VALIDATION_FAILED")
