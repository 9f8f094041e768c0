"""A regular file that is read piece by piece, as the one who gets it can take them."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator

from sandpod_runtime.disk import Disk
from sandpod_runtime.files import kinds
from sandpod_runtime.files.lines import Span, span
from sandpod_runtime.files.opening import open_file

# A multiple of 3, so that base64 has padding only at the end; and what the protocol wants of a stream.
PIECE = 65_535
_SCANNED_AT_ONCE = 1 << 20


class Source:
    """Opened in a disk's thread; `close` is quick."""

    def __init__(self, path: str) -> None:
        self._file = open_file(path)
        self.found = os.fstat(self._file)
        self.size = self.found.st_size
        try:
            self.head = os.pread(self._file, kinds.SNIFFED, 0)
        except OSError:
            self.close()
            raise
        self.mime = kinds.kind_of(path, self.head)

    @property
    def is_text(self) -> bool:
        return kinds.is_text(self.mime)

    @property
    def etag(self) -> str:
        return f'"{self.found.st_mtime_ns:x}-{self.size:x}-{self.found.st_ino:x}"'

    @property
    def has_unknown_size(self) -> bool:
        """The kernel makes up what is in /proc and /sys while it is read."""
        return self.size == 0 and bool(self.head)

    def close(self) -> None:
        os.close(self._file)

    def read(self, begin: int, end: int) -> bytes:
        parts: list[bytes] = []
        while begin < end and (part := os.pread(self._file, end - begin, begin)):
            parts.append(part)
            begin += len(part)
        return b"".join(parts)

    def lines(self, *, first: int, last: int | None) -> Span:
        return span(self._blocks(), first=first, last=last)

    def _blocks(self) -> Iterator[bytes]:
        position = 0
        while block := os.pread(self._file, _SCANNED_AT_ONCE, position):
            yield block
            position += len(block)

    async def pieces(self, disk: Disk, *, begin: int, end: int, step: int) -> AsyncGenerator[bytes]:
        """From `begin` to `end`, or to where the file ends by now. Each but the last has `step` bytes."""
        ahead = asyncio.ensure_future(disk.run(self.read, begin, min(end, begin + step)))
        try:
            while piece := await ahead:
                begin += len(piece)
                # The disk works while this piece is on its way.
                ahead = asyncio.ensure_future(disk.run(self.read, begin, min(end, begin + step)))
                yield piece
        finally:
            ahead.cancel()
