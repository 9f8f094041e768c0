"""tar and zip as we write and read them, held against the standard library."""

import contextlib
import io
import os
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandpod_runtime.archive.extract import extracted
from sandpod_runtime.archive.inflow import LimitError, Limits
from sandpod_runtime.archive.member import BadArchiveError, Kind, Member
from sandpod_runtime.archive.pack import Format, Summary, packed
from sandpod_runtime.archive.tar_format import END, header
from sandpod_runtime.archive.target import leads_inside
from sandpod_runtime.archive.unpack import Tally

from tests.support.archives import directory, file, hardlink, link, tar, tree

WIDE = Limits(total=1 << 30, file=1 << 30, entries=100_000, ratio=200, depth=128)
_NAME = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=80).filter(
    lambda name: name not in (".", "..")
)
_TREE = st.dictionaries(_NAME, st.binary(max_size=2000), min_size=1, max_size=6)
_FORMATS = st.sampled_from(["tar", "tar.gz", "zip"])
quickly = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def pack(path: Path, kind: Format = "tar", *, level: int = 6) -> bytes:
    return b"".join(packed(str(path), kind=kind, level=level, rules=[], summary=Summary()))


def unpack(
    data: bytes, path: Path, *, limits: Limits = WIDE, step: int = 700, all_links: bool = False
) -> Tally:
    tally = Tally()
    work = extracted(str(path), kind=None, limits=limits, tally=tally, all_links=all_links)
    next(work)
    try:
        for at in range(0, len(data), step):
            work.send(data[at : at + step])
        while True:
            work.send(b"")
    except StopIteration:
        return tally


@quickly
@given(files=_TREE, kind=_FORMATS, step=st.integers(1, 5000))
def test_what_is_packed_is_unpacked_whatever_the_pieces(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], kind: Format, step: int
) -> None:
    root = tmp_path_factory.mktemp("tree")
    (root / "from/sub").mkdir(parents=True)
    for number, (name, data) in enumerate(files.items()):
        path = root / "from" / ("sub" if number % 2 else "") / name
        try:
            path.write_bytes(data)
        except OSError:
            continue  # too long, in bytes
    unpack(pack(root / "from", kind), root / "to", step=step)
    times = kind != "zip"  # whose times are whole seconds
    assert tree(root / "to", times=times) == tree(root / "from", times=times)


@quickly
@given(
    name=st.lists(_NAME, min_size=1, max_size=5).map("/".join),
    target=_NAME,
    size=st.integers(0, 1 << 40),
    mtime=st.integers(-(10**18), 10**20),
    uid=st.integers(0, 1 << 31),
    kind=st.sampled_from(["file", "symlink", "hardlink", "directory"]),
)
def test_the_standard_library_reads_our_headers(
    name: str, target: str, size: int, mtime: int, uid: int, kind: Kind
) -> None:
    is_link = kind in ("symlink", "hardlink")
    data = header(
        Member(
            name=name,
            kind=kind,
            size=size if kind == "file" else 0,
            mode=0o4751,
            mtime_ns=mtime,
            target=target if is_link else "",
            uid=uid,
        )
    )
    assert len(data) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(data + END), ignore_zeros=False) as archive:
        found = archive.next()
    assert found is not None
    assert found.name == name.rstrip("/")
    assert found.linkname == (target if is_link else "")
    assert (found.size, found.uid, found.mode) == (size if kind == "file" else 0, uid, 0o4751)
    assert abs(found.mtime - mtime / 1e9) <= abs(mtime / 1e9) * 1e-9 + 1e-6


@quickly
@given(files=_TREE, style=st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
def test_we_read_what_the_standard_library_writes(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], style: int
) -> None:
    out = io.BytesIO()
    wanted: dict[str, bytes] = {}
    with tarfile.open(fileobj=out, mode="w", format=style) as archive:
        for name, data in files.items():
            if len(os.fsencode(name)) > 90:
                continue
            info = tarfile.TarInfo(f"{'d' * 60}/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
            wanted[info.name] = data
    root = tmp_path_factory.mktemp("to")
    assert unpack(out.getvalue(), root).skipped == []
    assert {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    } == wanted


@pytest.mark.parametrize("level", [0, 1, 9])
def test_the_standard_library_reads_our_zip(tmp_path: Path, level: int) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/ä.txt").write_text("text" * 10_000)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "link").symlink_to("d/ä.txt")
    with zipfile.ZipFile(io.BytesIO(pack(tmp_path, "zip", level=level))) as archive:
        assert archive.testzip() is None
        assert archive.read("d/ä.txt") == b"text" * 10_000
        assert sorted(archive.namelist()) == ["d/", "d/ä.txt", "empty", "link"]
        assert archive.getinfo("link").external_attr >> 16 == 0o120777


@quickly
@given(data=st.binary(max_size=3000), at=st.integers(0, 4000), byte=st.integers(0, 255), kind=_FORMATS)
def test_damage_never_raises_anything_unexpected(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int, byte: int, kind: Format
) -> None:
    root = tmp_path_factory.mktemp("tree")
    (root / "from").mkdir()
    (root / "from/file").write_bytes(data)
    (root / "from/link").symlink_to("file")
    archive = bytearray(pack(root / "from", kind))
    archive[at % len(archive)] = byte
    for damaged in (bytes(archive), bytes(archive[: at % len(archive)]), data):
        with contextlib.suppress(BadArchiveError, LimitError):
            unpack(damaged, root / "to")
    assert {path.name for path in (root / "to").rglob("*") if path.name.startswith(".sandpod-")} == set()


def test_gzip_files_that_follow_each_other_are_one_archive(tmp_path: Path) -> None:
    data = tar(file("a", b"1" * 3000), file("b", b"2" * 3000))
    zipped = b"".join(zlib.compress(data[at : at + 1000], wbits=31) for at in range(0, len(data), 1000))
    for step in (1, 7, 100_000):
        assert unpack(zipped, tmp_path / str(step), step=step).entries == 2


def test_a_truncated_gzip_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    zipped = tar(file("a", b"1" * 3000), zipped=True)
    with pytest.raises(BadArchiveError, match="too early"):
        unpack(zipped[:-5], tmp_path / "to")


@pytest.mark.parametrize(
    ("at", "reason"), [(0, "no tar, tar.gz or zip"), (1024, "a header of the tar archive is damaged")]
)
def test_what_is_no_tar_is_told_from_a_damaged_one(tmp_path: Path, at: int, reason: str) -> None:
    data = bytearray(tar(file("a"), file("b")))
    data[at + 148 : at + 156] = b"no octal"
    with pytest.raises(BadArchiveError, match=reason):
        unpack(bytes(data), tmp_path / "to")


def test_headers_of_any_size_are_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type = tarfile.GNUTYPE_LONGNAME
    info.size = 1 << 33
    with pytest.raises(BadArchiveError, match="1048576"):
        unpack(info.tobuf(tarfile.GNU_FORMAT), tmp_path / "to")


@pytest.mark.parametrize("field", [slice(124, 136), slice(136, 148), slice(108, 116)])
@pytest.mark.parametrize("number", [b"\xff" * 12, b"\x80" + b"\xff" * 11, b"\xff" + bytes(11), b"9" * 12])
def test_numbers_of_any_size_do_no_harm(tmp_path: Path, field: slice, number: bytes) -> None:
    block = bytearray(tar(file("a", b""))[:512])
    block[field] = number[: field.stop - field.start]
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    with contextlib.suppress(BadArchiveError, LimitError):
        assert unpack(bytes(block) + END, tmp_path / "to").entries == 1
    assert {path.name for path in (tmp_path / "to").iterdir()} <= {"a"}


@pytest.mark.parametrize(
    ("target", "depth", "inside"),
    [
        ("a", 0, True),
        ("../a", 0, False),
        ("../a", 1, True),
        ("../../a", 1, False),
        ("./../a", 1, True),
        ("a/..", 3, False),
        ("/etc", 9, False),
        ("a/../../b", 5, False),
    ],
)
def test_where_a_link_leads_is_known_without_following_it(target: str, depth: int, inside: bool) -> None:
    assert leads_inside(target, depth=depth) is inside


def test_links_survive_a_round(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/a").write_text("a")
    os.link(tmp_path / "from/a", tmp_path / "from/b")
    (tmp_path / "from/c").symlink_to("/nowhere")
    tally = unpack(pack(tmp_path / "from"), tmp_path / "to", all_links=True)
    assert tally.entries == 3
    assert (tmp_path / "to/a").samefile(tmp_path / "to/b")
    assert tree(tmp_path / "to") == tree(tmp_path / "from")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_name_that_is_not_utf_8_survives(tmp_path: Path, kind: Format) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / os.fsdecode(b"\xff\xc3")).write_text("a")
    unpack(pack(tmp_path / "from", kind), tmp_path / "to")
    assert [os.fsencode(path.name) for path in (tmp_path / "to").iterdir()] == [b"\xff\xc3"]


def test_a_file_that_shrinks_while_it_is_packed_spoils_nothing_after_it(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/big").write_bytes(b"x" * 3_000_000)
    summary = Summary()
    work = packed(str(tmp_path / "from"), kind="tar", level=0, rules=[], summary=summary)
    pieces = [next(work)]
    (tmp_path / "from/big").write_bytes(b"")
    data = b"".join([*pieces, *work])
    assert summary.changed == 1
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert [member.size for member in archive] == [3_000_000]
    assert len(data) % 512 == 0


def test_a_directory_that_may_not_be_written_is_filled_first(tmp_path: Path) -> None:
    data = tar(directory("d", mode=0o555, mtime=1000), file("d/a"), hardlink("d/b", "d/a"), link("d/l", "a"))
    assert unpack(data, tmp_path / "to").skipped == []
    info = (tmp_path / "to/d").stat()
    assert (info.st_mode & 0o777, info.st_mtime) == (0o555, 1000)
    (tmp_path / "to/d").chmod(0o755)
