"""One stream into a directory, and never out of it."""

import asyncio
import io
import os
import random
import tarfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.archives import directory, file, hardlink, link, made, names, run, tar, tree, zipped
from tests.support.runtime import Runtime, soon

Json = dict[str, Any]


async def put(http: aiohttp.ClientSession, data: Any, path: Path | str, **query: Any) -> tuple[int, Json]:
    if isinstance(data, bytes):
        data = io.BytesIO(data)
    params = {"path": str(path), **query}
    async with http.put("/api/files/archive", params=params, data=data) as response:
        return response.status, await response.json()


async def unpacked(http: aiohttp.ClientSession, data: bytes, path: Path, **query: Any) -> Json:
    status, body = await put(http, data, path, **query)
    assert status == 200, body
    return body


def reasons(body: Json) -> dict[str, str]:
    return {each["name"]: each["reason"] for each in body["skipped"]}


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "inside/to"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What no archive may change: it lies beside the target."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/secret").write_text("secret")
    return tmp_path / "inside"


@pytest.mark.parametrize("arguments", [["-cf"], ["-czf"]])
async def test_what_tar_packs_is_unpacked(
    http: aiohttp.ClientSession, tmp_path: Path, arguments: list[str]
) -> None:
    source = tmp_path / "from"
    (source / "d").mkdir(parents=True)
    (source / "d/run").write_text("x" * 70_000)
    (source / "d/run").chmod(0o751)
    (source / ("n" * 180)).write_text("long")
    (source / "link").symlink_to("d/run")
    os.link(source / "d/run", source / "d/same")
    run("tar", *arguments, tmp_path / "a", "-C", source, ".")
    body = await unpacked(http, (tmp_path / "a").read_bytes(), tmp_path / "to")
    assert (body["skipped"], body["entries"], body["bytes"]) == ([], 5, 70_004)
    assert tree(tmp_path / "to", times=False) == tree(source, times=False)
    assert (tmp_path / "to/d/run").stat().st_mtime == int((source / "d/run").stat().st_mtime)


async def test_what_zip_packs_is_unpacked(http: aiohttp.ClientSession, tmp_path: Path) -> None:
    source = tmp_path / "from"
    (source / "d/e").mkdir(parents=True)
    (source / "d/run").write_text("x" * 70_000)
    (source / "d/run").chmod(0o751)
    (source / "link").symlink_to("d/run")
    run("zip", "-qry", tmp_path / "a.zip", ".", cwd=source)
    body = await unpacked(http, (tmp_path / "a.zip").read_bytes(), tmp_path / "to")
    assert body["skipped"] == []
    assert tree(tmp_path / "to", times=False) == tree(source, times=False)


async def test_a_streamed_body_without_a_length_is_unpacked(http: aiohttp.ClientSession, to: Path) -> None:
    data = tar(file("a", b"a" * 1_000_000), zipped=True)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 100):
            yield data[at : at + 100]

    status, body = await put(http, pieces(), to)
    assert (status, body["bytes"]) == (200, 1_000_000)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/tmp/escaped", "an absolute name"),
        ("../secret", "a name with .."),
        ("a/../../secret", "a name with .."),
        ("./../secret", "a name with .."),
        ("a/b/../c", "a name with .."),
    ],
)
async def test_names_that_lead_outside_are_left_out(
    http: aiohttp.ClientSession, outside: Path, to: Path, name: str, reason: str
) -> None:
    for data in (
        tar(file(name, b"evil"), file("good")),
        zipped([(name, b"evil", 0o100644), ("good", b"x", 0o100644)]),
    ):
        body = await unpacked(http, data, to)
        assert reasons(body) == {name: reason}
        assert (to / "good").exists()
    assert (outside / "secret").read_text() == "secret"
    assert "escaped" not in names(Path("/tmp"))
    assert names(outside) == ["secret", "to"]


async def test_nothing_is_written_through_a_link_that_the_archive_brought(
    http: aiohttp.ClientSession, outside: Path, to: Path
) -> None:
    for target in ("..", "../", str(outside), "./.."):
        data = tar(link("l", target), file("l/secret", b"evil"), file("l/new", b"evil"))
        assert set(reasons(await unpacked(http, data, to, links="all"))) == {"l/secret", "l/new"}
        assert set(reasons(await unpacked(http, data, to))) >= {"l/secret"} or (to / "l").is_symlink()
    archive = zipped([("z", str(outside).encode(), 0o120777), ("z/new", b"evil", 0o100644)])
    assert set(reasons(await unpacked(http, archive, to, links="all"))) == {"z/new"}
    assert tree(outside).keys() - {"to", "to/l", "to/z"} == {"secret"}
    assert (outside / "secret").read_text() == "secret"


async def test_a_chain_of_links_leads_nowhere(http: aiohttp.ClientSession, outside: Path, to: Path) -> None:
    """Each looks harmless by its text; together they would climb out."""
    data = tar(
        directory("a/b/c"),
        link("a/b/c/up", "../.."),
        link("a/x", "b/c/up/../.."),
        link("y", "a/b/c/up/.."),
        file("a/x/secret", b"evil"),
        file("y/secret", b"evil"),
        file("a/b/c/up/new", b"evil"),
    )
    body = await unpacked(http, data, to)
    assert reasons(body) == {
        "a/x": "a link that leads outside",
        "y": "a link that leads outside",
        "a/b/c/up/new": "a file or a link is where its directory should be",
    }
    assert (outside / "secret").read_text() == "secret"


async def test_links_that_lead_outside_are_made_only_when_wanted(
    http: aiohttp.ClientSession, outside: Path, to: Path
) -> None:
    data = tar(link("a", "/etc/passwd"), link("b", "../secret"), link("c", "b"), link("d/e", "../c"))
    body = await unpacked(http, data, to)
    assert set(reasons(body)) == {"a", "b"}
    assert names(to) == ["c", "d"]
    assert (await unpacked(http, data, to, links="all"))["skipped"] == []
    assert (to / "a").readlink() == Path("/etc/passwd")


async def test_a_file_replaces_a_link_and_does_not_follow_it(
    http: aiohttp.ClientSession, outside: Path, to: Path
) -> None:
    made(to)
    (to / "old").symlink_to("../secret")
    os.link(outside / "secret", to / "hard")
    data = tar(link("new", "../secret"), file("new", b"1"), file("old", b"2"), file("hard", b"3"))
    assert (await unpacked(http, data, to, links="all"))["skipped"] == []
    assert [(to / name).read_bytes() for name in ("new", "old", "hard")] == [b"1", b"2", b"3"]
    assert not (to / "old").is_symlink()
    assert (outside / "secret").read_text() == "secret"


async def test_links_that_lie_in_the_target_are_not_followed(
    http: aiohttp.ClientSession, outside: Path, to: Path
) -> None:
    made(to)
    (to / "dir").symlink_to(outside)
    body = await unpacked(http, tar(file("dir/new", b"evil"), directory("dir", mode=0o700)), to)
    assert set(reasons(body)) == {"dir/new", "dir/"}
    assert not (outside / "new").exists()


async def test_hard_links_reach_nothing_outside(http: aiohttp.ClientSession, outside: Path, to: Path) -> None:
    made(to)
    (to / "dir").symlink_to(outside)
    (to / "link").symlink_to("../secret")
    data = tar(
        hardlink("a", "../secret"),
        hardlink("b", str(outside / "secret")),
        hardlink("c", "dir/secret"),
        hardlink("d", "link"),
        hardlink("e", "missing"),
        hardlink("f", ""),
    )
    body = await unpacked(http, data, to)
    assert set(reasons(body)) == {"a", "b", "c", "d", "e", "f"}
    assert (outside / "secret").stat().st_nlink == 1


async def test_devices_and_fifos_are_not_made_and_no_special_bits_are_set(
    http: aiohttp.ClientSession, to: Path
) -> None:
    data = tar(
        ({"name": "null", "type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, b""),
        ({"name": "disk", "type": tarfile.BLKTYPE}, b""),
        ({"name": "pipe", "type": tarfile.FIFOTYPE}, b""),
        file("su", mode=0o6755),
        directory("d", mode=0o7777),
    )
    assert reasons(await unpacked(http, data, to)) == {
        "null": "a character device",
        "disk": "a block device",
        "pipe": "a FIFO",
    }
    assert ((to / "su").stat().st_mode & 0o7777, (to / "d").stat().st_mode & 0o7777) == (0o755, 0o777)


async def test_sparse_files_are_left_out_and_what_follows_is_read(
    http: aiohttp.ClientSession, to: Path, tmp_path: Path
) -> None:
    with (tmp_path / "holes").open("wb") as sparse:
        for at in range(0, 60_000_000, 1_000_000):
            sparse.seek(at)
            sparse.write(b"x")
    (tmp_path / "z").write_text("after")
    for style in ("gnu", "posix"):
        data = run("tar", "-cS", f"--format={style}", "-C", tmp_path, "holes", "z")
        body = await unpacked(http, data, to)
        assert list(reasons(body).values()) == ["a sparse file; pack it without its holes"]
        assert (to / "z").read_text() == "after"


async def test_of_entries_with_one_name_the_last_counts(http: aiohttp.ClientSession, to: Path) -> None:
    body = await unpacked(http, tar(file("a", b"1"), file("a", b"2"), directory("d"), file("d", b"3")), to)
    assert (to / "a").read_bytes() == b"2"
    assert reasons(body) == {"d": "a directory is in its place"}


async def test_names_that_the_kernel_does_not_take_are_left_out(
    http: aiohttp.ClientSession, to: Path
) -> None:
    body = await unpacked(http, tar(file("n" * 300), file("m/" * 3000 + "m"), file("good")), to)
    assert body["entries"] == 1
    assert sorted(reasons(body).values()) == ["File name too long", "a name of more than 4096 bytes"]


async def test_a_path_that_is_too_deep_ends_it(http: aiohttp.ClientSession, to: Path) -> None:
    status, body = await put(http, tar(file("first"), file("d/" * 200 + "f"), file("last")), to)
    assert (status, body["code"]) == (413, "FILE_TOO_LARGE")
    assert "128" in body["message"]
    assert (body["context"]["entries"], (to / "first").exists(), (to / "last").exists()) == (1, True, False)


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
async def test_bombs_are_stopped(http: aiohttp.ClientSession, runtime: Runtime, to: Path, kind: str) -> None:
    zeros = bytes(150 << 20)
    bomb = {"zip": zipped([("zeros", zeros, 0o100644)]), "tar.gz": tar(file("zeros", zeros), zipped=True)}
    data = bomb[kind]
    before = runtime.memory()
    for query, word in (
        ({}, "maxRatio"),
        ({"maxRatio": 2000, "maxBytes": 1_000_000}, "maxBytes"),
        ({"maxRatio": 2000, "maxFileBytes": 1_000_000}, "maxFileBytes"),
    ):
        status, body = await put(http, data, to, **query)
        assert (status, body["code"]) == (413, "FILE_TOO_LARGE"), body
        assert word in body["message"]
        assert names(to) == []
    assert (await unpacked(http, data, to, maxRatio=2000))["bytes"] == len(zeros)
    assert runtime.memory() - before < 48


async def test_zip_entries_that_share_their_data_are_counted_each(
    http: aiohttp.ClientSession, to: Path
) -> None:
    """A few megabytes whose directory names the same kernel thousands of times."""
    kernel = zipped([("0", bytes(1 << 20), 0o100644)])
    with zipfile.ZipFile(io.BytesIO(kernel)) as archive:
        start = archive.start_dir
    central, end = kernel[start:-22], kernel[-22:]
    copies = b"".join(central.replace(b"0", b"%c" % (65 + number), 1) for number in range(26)) * 30
    bomb = kernel[:start] + copies + end[:12] + len(copies).to_bytes(4, "little") + end[16:]
    status, body = await put(http, bomb, to)
    assert (status, body["code"]) == (413, "FILE_TOO_LARGE")
    assert "maxRatio" in body["message"]


async def test_the_number_of_entries_is_bounded(http: aiohttp.ClientSession, to: Path) -> None:
    for data in (
        tar(*(directory(f"d{number}") for number in range(20))),
        zipped([(f"f{number}", b"", 0o100644) for number in range(20)]),
    ):
        status, body = await put(http, data, to, maxEntries=10)
        assert (status, body["context"]["entries"]) == (413, 10)
        assert "maxEntries" in body["message"]


async def test_the_list_of_what_was_left_out_is_bounded(http: aiohttp.ClientSession, to: Path) -> None:
    body = await unpacked(http, tar(*(file(f"../{number}") for number in range(500))), to)
    assert (len(body["skipped"]), body["skippedCount"]) == (100, 500)


@pytest.mark.parametrize(
    "data",
    [b"no archive at all " * 100, b"\x1f\x8b\x08garbage", b"PK\x03\x04" + bytes(200), b"x", b"\x1f\x8b", b""],
    ids=["text", "gzip", "zip", "short", "magic", "nothing"],
)
async def test_what_is_no_archive_is_refused(http: aiohttp.ClientSession, to: Path, data: bytes) -> None:
    status, body = await put(http, data, to)
    assert (status, body["code"]) == (400, "VALIDATION_FAILED")
    assert body["context"]["validationErrors"][0]["code"] == "INVALID_ARCHIVE"


async def test_a_damaged_archive_tells_what_was_unpacked(http: aiohttp.ClientSession, to: Path) -> None:
    data = tar(file("a", b"1" * 1000), file("b", b"2" * 100_000))
    status, body = await put(http, data[:50_000], to)
    assert (status, body["context"]["entries"]) == (400, 1)
    assert names(to) == ["a"]
    damaged = bytearray(zipped([("a", b"1" * 1000, 0o100644)], compression=zipfile.ZIP_STORED))
    damaged[100] ^= 1
    status, body = await put(http, bytes(damaged), to / "zip")
    assert (status, list((to / "zip").iterdir())) == (400, [])


async def test_encrypted_and_oddly_compressed_entries_are_left_out(
    http: aiohttp.ClientSession, to: Path
) -> None:
    data = zipped([("a", b"x" * 100, 0o100644)], compression=zipfile.ZIP_LZMA)
    assert reasons(await unpacked(http, data, to)) == {"a": "compressed by another method than deflate"}
    encrypted = bytearray(zipped([("a", b"x" * 100, 0o100644)]))
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    assert reasons(await unpacked(http, bytes(encrypted), to)) == {"a": "encrypted"}


async def test_an_empty_archive_makes_an_empty_directory(http: aiohttp.ClientSession, to: Path) -> None:
    assert (await unpacked(http, tar(), to))["entries"] == 0
    assert (await unpacked(http, zipped([]), to))["entries"] == 0
    assert names(to) == []


async def test_a_file_is_no_target(http: aiohttp.ClientSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file/below"):
        status, body = await put(http, tar(file("a")), path)
        assert (status, body["code"]) == (400, "NOT_DIRECTORY")


async def test_a_client_that_hangs_up_leaves_no_half_file(
    http: aiohttp.ClientSession, runtime: Runtime, to: Path
) -> None:
    data = tar(file("a", random.Random(1).randbytes(3_000_000)))
    head = (
        f"PUT /api/files/archive?path={to} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    _, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(head.encode() + data[:2_000_000])
    await writer.drain()
    await soon(lambda: to.exists() and any(path.stat().st_size > 500_000 for path in to.iterdir()))
    writer.close()
    await soon(lambda: names(to) == [])


async def test_directories_that_are_swapped_meanwhile_lead_nowhere(
    http: aiohttp.ClientSession, runtime: Runtime, outside: Path, to: Path
) -> None:
    """A process in the sandbox turns a directory into a link, again and again, while files go into it."""
    target = made(outside / "target")
    made(to)
    script = f"cd {to}; while :; do mkdir d; mv -T d e; ln -s {target} d; rm d; rm -rf e; done 2>/dev/null"
    swapper = await asyncio.create_subprocess_exec("bash", "-c", script)
    try:
        members = [file(f"d/{number}", b"evil") for number in range(3000)]
        for _ in range(3):
            await unpacked(http, tar(*members), to)
    finally:
        swapper.kill()
        await swapper.wait()
    assert names(target) == []
