"""Reading zip. Its directory comes last, so the whole archive has to lie in a file first.

Not by the standard library's zipfile, which makes an object of every entry before anybody could count them.
"""

import os
import stat
import struct
import time
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from sandpod_runtime.archive.inflow import Limits, check_ratio, check_total
from sandpod_runtime.archive.member import BadArchiveError, Kind, Member, Reading
from sandpod_runtime.archive.target import SkippedError
from sandpod_runtime.archive.unpack import Unpacking
from sandpod_runtime.disk import write_all

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_CENTRAL = struct.Struct("<4s4B4HL2L5H2L")
_LOCAL_SIZE = 30
_END_SIZE = 22
_LONGEST_COMMENT = 65_535
_PIECE = 262_144
_UNKNOWN_32 = 0xFFFFFFFF
_LONGEST_LINK = 4096
_STEP_SECONDS = 0.1
_STORED, _DEFLATED = 0, 8
_UNIX = 3


class _Entry(NamedTuple):
    member: Member
    encrypted: bool
    method: int
    crc: int
    stored_size: int
    at: int


class _Window:
    """Reads on from a place, a large piece at a time."""

    def __init__(self, descriptor: int, *, at: int, end: int) -> None:
        self._descriptor = descriptor
        self._next = at
        self._end = end
        self._data = b""

    def read(self, count: int) -> bytes:
        if len(self._data) < count:
            wanted = min(max(count, _PIECE), self._end - self._next)
            more = os.pread(self._descriptor, wanted, self._next) if wanted > 0 else b""
            self._next += len(more)
            self._data += more
        found, self._data = self._data[:count], self._data[count:]
        if len(found) < count:
            raise BadArchiveError("the directory of the zip archive ends too early")
        return found

    @property
    def at_end(self) -> bool:
        return not self._data and self._next >= self._end


def unpack_zip(descriptor: int, unpacking: Unpacking) -> Reading[None]:
    """Yields now and then, so that whoever runs it may stop it."""
    size = os.fstat(descriptor).st_size
    spent = _Spent(limits=unpacking.limits, received=size)
    pause = time.monotonic() + _STEP_SECONDS
    for entry in _entries(descriptor, size=size):
        names = unpacking.admit(entry.member)
        if names is None:
            continue
        try:
            if entry.member.kind == "directory":
                unpacking.place(entry.member, names)
                continue
            pieces = _content(descriptor, entry, spent)
            if entry.member.kind == "symlink":
                unpacking.place(_link(entry.member, pieces), names)
                continue
            with unpacking.target.file(entry.member, names) as file:
                for piece in pieces:
                    write_all(file, piece)
                    unpacking.tally.bytes += len(piece)
                    if time.monotonic() > pause:
                        yield
                        pause = time.monotonic() + _STEP_SECONDS
            unpacking.tally.entries += 1
        except SkippedError as error:
            unpacking.tally.skip(entry.member.name, str(error))
        if time.monotonic() > pause:
            yield
            pause = time.monotonic() + _STEP_SECONDS


class _Spent:
    def __init__(self, *, limits: Limits, received: int) -> None:
        self._limits = limits
        self._received = received
        self._delivered = 0

    def count(self, more: int) -> None:
        self._delivered += more
        check_total(self._limits, delivered=self._delivered)
        check_ratio(self._limits, received=self._received, delivered=self._delivered)


def _link(member: Member, pieces: Iterator[bytes]) -> Member:
    if not 0 < member.size <= _LONGEST_LINK:
        raise SkippedError("a link that leads nowhere")
    target = os.fsdecode(b"".join(pieces))
    return Member(name=member.name, kind="symlink", target=target, mtime_ns=member.mtime_ns)


def _content(descriptor: int, entry: _Entry, spent: _Spent) -> Iterator[bytes]:
    if entry.encrypted:
        raise SkippedError("encrypted")
    if entry.method not in (_STORED, _DEFLATED):
        raise SkippedError("compressed by another method than deflate")
    return _checked_content(descriptor, entry, spent)


def _checked_content(descriptor: int, entry: _Entry, spent: _Spent) -> Iterator[bytes]:
    local = os.pread(descriptor, _LOCAL_SIZE, entry.at)
    if len(local) < _LOCAL_SIZE or not local.startswith(MAGIC[0]):
        raise BadArchiveError("an entry of the zip archive is not where its directory says")
    name_length, extra_length = struct.unpack("<2H", local[26:30])
    at = entry.at + _LOCAL_SIZE + name_length + extra_length
    stored = _stored(descriptor, at=at, size=entry.stored_size)
    crc = size = 0
    for piece in stored if entry.method == _STORED else _inflated(stored):
        spent.count(len(piece))
        size += len(piece)
        if size > entry.member.size:
            break
        crc = zlib.crc32(piece, crc)
        yield piece
    if size != entry.member.size or crc != entry.crc:
        raise BadArchiveError("an entry of the zip archive is damaged")


def _stored(descriptor: int, *, at: int, size: int) -> Iterator[bytes]:
    end = at + size
    while at < end:
        piece = os.pread(descriptor, min(_PIECE, end - at), at)
        if not piece:
            raise BadArchiveError("the zip archive ends too early")
        at += len(piece)
        yield piece


def _inflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj(-15)
    try:
        for piece in pieces:
            rest = piece
            while True:
                out = inflate.decompress(rest, _PIECE)
                rest = inflate.unconsumed_tail
                if out:
                    yield out
                # A full piece may have used up the input and still not be all that it stands for.
                if inflate.eof or (not rest and len(out) < _PIECE):
                    break
    except zlib.error as error:
        raise BadArchiveError(f"an entry of the zip archive is damaged: {error}") from error


def _entries(descriptor: int, *, size: int) -> Iterator[_Entry]:
    start, end, base = _directory(descriptor, size=size)
    window = _Window(descriptor, at=start, end=end)
    while not window.at_end:
        fields = _CENTRAL.unpack(window.read(_CENTRAL.size))
        if fields[0] != b"PK\x01\x02":
            raise BadArchiveError("the directory of the zip archive is damaged")
        name, extra = window.read(fields[12]), window.read(fields[13])
        window.read(fields[14])
        yield _entry(fields, name=name, extra=extra, base=base)


def _directory(descriptor: int, *, size: int) -> tuple[int, int, int]:
    """Where the directory begins and ends, and what every place in it is counted from."""
    tail_at = max(0, size - _END_SIZE - _LONGEST_COMMENT)
    tail = os.pread(descriptor, size - tail_at, tail_at)
    found = tail.rfind(b"PK\x05\x06")
    if found < 0 or len(tail) - found < _END_SIZE:
        raise BadArchiveError("this is no zip: its directory is missing")
    length, offset = struct.unpack("<2L", tail[found + 12 : found + 20])
    end = tail_at + found
    locator = os.pread(descriptor, 20, end - 20) if end >= 20 else b""
    if locator.startswith(b"PK\x06\x07"):
        end = struct.unpack("<Q", locator[8:16])[0]
        record = os.pread(descriptor, 56, end) if end < size else b""
        if not record.startswith(b"PK\x06\x06") or len(record) < 56:
            raise BadArchiveError("the directory of the zip archive is damaged")
        length, offset = struct.unpack("<2Q", record[40:56])
    base = end - length - offset
    if base < 0:
        raise BadArchiveError("the directory of the zip archive is not where its end says")
    return base + offset, end, base


def _entry(fields: tuple[int, ...], *, name: bytes, extra: bytes, base: int) -> _Entry:
    flags, method, when, day, crc, stored_size, size = fields[5:12]
    attributes, offset = fields[17:19]
    parts = dict(_extra_parts(extra))
    wide = _Wide(parts.get(1, b""))
    size, stored_size, offset = wide.of(size), wide.of(stored_size), wide.of(offset)
    mode = attributes >> 16 if fields[2] == _UNIX else 0
    text = _name(name, is_dos=not flags & 0x800 and fields[2] != _UNIX)
    kind: Kind = "file"
    if text.endswith("/"):
        kind = "directory"
    elif stat.S_ISLNK(mode):
        kind = "symlink"
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        kind = "other"
    return _Entry(
        member=Member(
            name=text,
            kind=kind,
            size=size,
            mode=stat.S_IMODE(mode) or (0o755 if kind == "directory" else 0o644),
            mtime_ns=_seconds(parts.get(0x5455, b""), when=when, day=day) * 1_000_000_000,
            reason="a special file",
        ),
        encrypted=bool(flags & 1),
        method=method,
        crc=crc,
        stored_size=stored_size,
        at=base + offset,
    )


class _Wide:
    """Numbers of 64 bits stand beside those of 32 that have no room for them, in a fixed order."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def of(self, number: int) -> int:
        if number != _UNKNOWN_32 or len(self._data) < 8:
            return number
        found, self._data = struct.unpack("<Q", self._data[:8])[0], self._data[8:]
        return min(found, 1 << 62)


def _extra_parts(extra: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack("<2H", extra[at : at + 4])
        yield kind, extra[at + 4 : at + 4 + length]
        at += 4 + length


def _name(name: bytes, *, is_dos: bool) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("cp437") if is_dos else os.fsdecode(name)


def _seconds(stamp: bytes, *, when: int, day: int) -> int:
    if len(stamp) >= 5 and stamp[0] & 1:
        return struct.unpack("<l", stamp[1:5])[0]
    import calendar  # not needed by anything else in the runtime

    date = ((day >> 9) + 1980, max(1, day >> 5 & 15), max(1, day & 31))
    clock = (when >> 11, when >> 5 & 63, (when & 31) * 2)
    try:
        return calendar.timegm((*date, *clock))
    except ValueError:
        return 0
