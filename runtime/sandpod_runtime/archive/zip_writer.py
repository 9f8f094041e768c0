"""Writing zip as a stream: sizes follow the data, the directory comes last and is kept until then."""

import os
import stat
import struct
import time
import zlib
from collections.abc import Iterable, Iterator

from sandpod_runtime.archive.member import Member

# The directory is kept in memory until the end: 64 MiB of it are about half a million entries.
LARGEST_DIRECTORY = 64 << 20
_UTF8, _SIZES_FOLLOW = 0x800, 0x08
_STORED, _DEFLATED = 0, 8
_MOST_32 = 0xFFFFFFFF
_MOST_16 = 0xFFFF
# A file may deflate to a little more than its size.
_WIDE_FROM = 0xFFF00000
_FORMATS = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "symlink": stat.S_IFLNK}


class DirectoryTooLargeError(Exception):
    """So many entries cannot be a zip; the message names the limit."""


class ZipWriter:
    def __init__(self, *, level: int) -> None:
        self._level = level
        self._at = 0
        self._count = 0
        self._directory = bytearray()

    def write(self, member: Member, pieces: Iterable[bytes]) -> Iterator[bytes]:
        name = os.fsencode(member.name) + (b"/" if member.kind == "directory" else b"")
        if member.kind == "symlink":
            pieces = (os.fsencode(member.target),)
        method = _DEFLATED if member.kind == "file" and self._level else _STORED
        flags = _SIZES_FOLLOW | (_UTF8 if _is_utf8(name) else 0)
        is_wide = member.size >= _WIDE_FROM
        stamps = _stamps(member.mtime_ns // 1_000_000_000)
        start = self._at
        extra = stamps[1] + (struct.pack("<2H2Q", 1, 16, 0, 0) if is_wide else b"")
        common = struct.pack("<H", 45 if is_wide else 20) + struct.pack("<2H", flags, method) + stamps[0]
        yield self._sent(
            b"PK\x03\x04" + common + bytes(12) + struct.pack("<2H", len(name), len(extra)) + name + extra
        )
        crc = size = stored_size = 0
        deflate = zlib.compressobj(self._level, zlib.DEFLATED, -15) if method == _DEFLATED else None
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
            size += len(piece)
            out = piece if deflate is None else deflate.compress(piece)
            stored_size += len(out)
            yield self._sent(out)
        if deflate is not None:
            out = deflate.flush()
            stored_size += len(out)
            yield self._sent(out)
        yield self._sent(b"PK\x07\x08" + struct.pack("<L2Q" if is_wide else "<L2L", crc, stored_size, size))
        mode = _FORMATS[member.kind] | member.mode & 0o7777
        self._remember(
            common,
            crc=crc,
            stored_size=stored_size,
            size=size,
            name=name,
            stamp=stamps[1],
            mode=mode,
            start=start,
        )

    def end(self) -> Iterator[bytes]:
        start, length = self._at, len(self._directory)
        yield self._sent(bytes(self._directory))
        if self._count > _MOST_16 or start + length > _MOST_32:
            record = struct.pack("<Q2H2L4Q", 44, 45, 45, 0, 0, self._count, self._count, length, start)
            locator = struct.pack("<LQL", 0, self._at, 1)
            yield self._sent(b"PK\x06\x06" + record + b"PK\x06\x07" + locator)
        count = min(self._count, _MOST_16)
        yield b"PK\x05\x06" + struct.pack(
            "<4H2LH", 0, 0, count, count, min(length, _MOST_32), min(start, _MOST_32), 0
        )

    def _remember(
        self,
        common: bytes,
        *,
        crc: int,
        stored_size: int,
        size: int,
        name: bytes,
        stamp: bytes,
        mode: int,
        start: int,
    ) -> None:
        numbers = (size, stored_size, start)
        wide = b"".join(struct.pack("<Q", number) for number in numbers if number >= _MOST_32)
        extra = stamp + (struct.pack("<2H", 1, len(wide)) + wide if wide else b"")
        version = struct.pack("<2B", 45 if wide else 20, 3)
        self._directory += (
            b"PK\x01\x02"
            + version
            + common
            + struct.pack(
                "<3L5H2L",
                crc,
                min(stored_size, _MOST_32),
                min(size, _MOST_32),
                len(name),
                len(extra),
                0,
                0,
                0,
                mode << 16,
                min(start, _MOST_32),
            )
            + name
            + extra
        )
        self._count += 1
        if len(self._directory) > LARGEST_DIRECTORY:
            raise DirectoryTooLargeError(
                f"the directory of a zip has at most {LARGEST_DIRECTORY >> 20} MiB; take tar.gz"
            )

    def _sent(self, data: bytes) -> bytes:
        self._at += len(data)
        return data


def _stamps(seconds: int) -> tuple[bytes, bytes]:
    """The time as DOS had it, in steps of two seconds and only from 1980, and exactly."""
    moment = time.gmtime(min(max(seconds, 315_532_800), 4_354_819_198))
    day = (moment.tm_year - 1980) << 9 | moment.tm_mon << 5 | moment.tm_mday
    clock = moment.tm_hour << 11 | moment.tm_min << 5 | moment.tm_sec // 2
    if not -(1 << 31) <= seconds < 1 << 31:
        return struct.pack("<2H", clock, day), b""
    return struct.pack("<2H", clock, day), struct.pack("<2HBl", 0x5455, 5, 1, seconds)


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
