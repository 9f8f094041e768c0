"""Packing: a directory or a file becomes a stream of bytes, piece by piece, while it may be changing."""

import os
import stat
import time
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from sandpod_runtime.archive.member import Kind, Member
from sandpod_runtime.archive.tar_format import END, header, padding
from sandpod_runtime.archive.zip_writer import ZipWriter
from sandpod_runtime.search.walk import Found, Rules, walk

Format = Literal["tar.gz", "tar", "zip"]

_READ = 262_144
# A step ends when it has so much, or took so long: then the client may have gone.
_STEP = 524_288
_STEP_SECONDS = 0.1
# What is remembered of files with several names; the rest of them are packed once for each name.
_MOST_LINKED = 100_000


class NothingToPackError(Exception):
    """This is neither a file nor a directory."""


@dataclass(kw_only=True, slots=True)
class Summary:
    entries: int = 0
    bytes: int = 0
    # Sockets, FIFOs and devices, and what could not be read or has gone.
    skipped: int = 0
    # Files that were shorter when they were read than a moment before: the rest of them are zeros.
    changed: int = 0
    # The first of what is there and could not be read.
    unreadable: str = ""


class Writer(Protocol):
    def write(self, member: Member, pieces: Iterable[bytes]) -> Iterator[bytes]: ...

    def end(self) -> Iterator[bytes]: ...


class TarWriter:
    def write(self, member: Member, pieces: Iterable[bytes]) -> Iterator[bytes]:
        yield header(member)
        yield from pieces
        yield padding(member.size)

    def end(self) -> Iterator[bytes]:
        yield END


def packed(
    path: str, *, kind: Format, level: int, rules: Sequence[Rules], summary: Summary
) -> Generator[bytes, None, None]:
    """In steps of bounded size and time; a step may be empty. Raises OSError when `path` cannot be read."""
    writer: Writer = ZipWriter(level=level) if kind == "zip" else TarWriter()
    pieces = _archive(path, writer=writer, rules=rules, summary=summary)
    return _steps(_gzipped(pieces, level=level) if kind == "tar.gz" else pieces)


def _archive(path: str, *, writer: Writer, rules: Sequence[Rules], summary: Summary) -> Iterator[bytes]:
    packing = _Packing(writer=writer, summary=summary)
    info = os.stat(path)  # noqa: PTH116 (a Path would tidy it)
    if stat.S_ISDIR(info.st_mode):
        yield from packing.tree(path, rules)
    elif not stat.S_ISREG(info.st_mode):
        raise NothingToPackError(path)
    else:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        yield from packing.file(descriptor, name=path.rstrip("/").rpartition("/")[2])
    yield from writer.end()


class _Packing:
    def __init__(self, *, writer: Writer, summary: Summary) -> None:
        self._writer = writer
        self._summary = summary
        self._links: dict[tuple[int, int], str] | None = {} if isinstance(writer, TarWriter) else None

    def tree(self, path: str, rules: Sequence[Rules]) -> Iterator[bytes]:
        for found in walk(path, rules=rules, failed=self._left_out):
            if found is None:
                yield b""
                continue
            try:
                yield from self._entry(found)
            except FileNotFoundError:
                self._summary.skipped += 1  # it has gone since it was listed

    def file(self, descriptor: int, *, name: str, first: str = "") -> Iterator[bytes]:
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                self._summary.skipped += 1
                return
            if first:
                yield from self._write(_member(name, info=info, kind="hardlink", target=first))
                return
            yield from self._write(
                _member(name, info=info, kind="file", size=info.st_size),
                _content(descriptor, size=info.st_size, summary=self._summary),
            )
        finally:
            os.close(descriptor)

    def _entry(self, found: Found) -> Iterator[bytes]:
        info = found.entry.stat(follow_symlinks=False)
        path = found.entry.path
        if stat.S_ISDIR(info.st_mode):
            yield from self._write(_member(found.name, info=info, kind="directory"))
        elif stat.S_ISLNK(info.st_mode):
            target = os.readlink(path)  # noqa: PTH115
            yield from self._write(_member(found.name, info=info, kind="symlink", target=target))
        elif stat.S_ISREG(info.st_mode):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                raise
            except OSError as error:
                self._left_out(found.name, os.strerror(error.errno or 0))
                return
            yield from self.file(descriptor, name=found.name, first=self._first_name(info, found.name))
        else:
            self._summary.skipped += 1

    def _first_name(self, info: os.stat_result, name: str) -> str:
        """Under which name the same file was packed before; "" when it was not."""
        if self._links is None or info.st_nlink < 2:
            return ""
        key = (info.st_dev, info.st_ino)
        if first := self._links.get(key):
            return first
        if len(self._links) < _MOST_LINKED:
            self._links[key] = name
        return ""

    def _write(self, member: Member, pieces: Iterable[bytes] = ()) -> Iterator[bytes]:
        yield from self._writer.write(member, pieces)
        self._summary.entries += 1

    def _left_out(self, name: str, reason: str) -> None:
        self._summary.skipped += 1
        self._summary.unreadable = self._summary.unreadable or f"{name}: {reason}"


def _member(name: str, *, info: os.stat_result, kind: Kind, size: int = 0, target: str = "") -> Member:
    return Member(
        name=name,
        kind=kind,
        size=size,
        mode=stat.S_IMODE(info.st_mode),
        mtime_ns=info.st_mtime_ns,
        target=target,
        uid=info.st_uid,
        gid=info.st_gid,
    )


def _content(descriptor: int, *, size: int, summary: Summary) -> Iterator[bytes]:
    """Exactly `size` bytes, whatever becomes of the file: what follows has to be where it belongs."""
    left = size
    while left and (piece := os.read(descriptor, min(left, _READ))):
        left -= len(piece)
        summary.bytes += len(piece)
        yield piece
    if left:
        summary.changed += 1
    while left:
        yield bytes(min(left, _READ))
        left -= min(left, _READ)


def _gzipped(pieces: Iterable[bytes], *, level: int) -> Iterator[bytes]:
    deflate = zlib.compressobj(level, zlib.DEFLATED, 31)
    for piece in pieces:
        yield deflate.compress(piece)
    yield deflate.flush()


def _steps(pieces: Iterable[bytes]) -> Generator[bytes, None, None]:
    waiting: list[bytes] = []
    size = 0
    until = time.monotonic() + _STEP_SECONDS
    for piece in pieces:
        if piece:
            waiting.append(piece)
            size += len(piece)
        if size >= _STEP or time.monotonic() > until:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
            until = time.monotonic() + _STEP_SECONDS
    yield b"".join(waiting)
