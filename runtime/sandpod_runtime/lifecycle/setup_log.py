"""What the setup writes: the beginning and the end of it are kept, and readers follow at their own pace."""

import asyncio

from sandpod_runtime.budget import Budget
from sandpod_runtime.process.output import Capture
from sandpod_runtime.process.rendering import cut_note

LONGEST = 1 << 20
# As a file it has a line in the place of what was cut.
LARGEST_FILE = LONGEST + 256


class SetupLog:
    def __init__(self, *, memory: Budget, limit: int = LONGEST) -> None:
        self._capture = Capture(limit=limit, budget=memory)
        self._news = asyncio.Event()
        self.closed = False

    @property
    def total(self) -> int:
        """How many bytes were written; the end of what `read` can give."""
        return self._capture.total

    def write(self, data: bytes) -> bool:
        # What a step has left in the background may write for ever, and is not the setup any more.
        if not self.closed:
            self._capture.write(data)
            self._wake()
        return True

    def note(self, line: str) -> None:
        """A line of the runtime's own."""
        start = "" if self._capture.ends_line else "\n"
        self.write(f"{start}{line}\n".encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._wake()

    async def more(self) -> None:
        """Until something is written after this call, or the end comes."""
        if not self.closed:
            await self._news.wait()

    def read(self, offset: int, *, most: int) -> tuple[bytes, int]:
        """About so many bytes from there on, and the offset that continues them. Where bytes were cut, a line
        says how many.
        """
        head, (first, second) = self._capture.head, self._capture.tail
        if offset < len(head):
            data = bytes(head[offset : offset + most])
            return data, offset + len(data)
        start = self._capture.total - len(first) - len(second)
        note = b"\n" + cut_note(start - offset).encode() if offset < start else b""
        skip = max(offset - start, 0)
        data = bytes(first[skip : skip + most])
        if not data:
            skip -= len(first)
            data = bytes(second[skip : skip + most])
        return note + data, max(offset, start) + len(data)

    def whole(self) -> bytes:
        pieces: list[bytes] = []
        offset = 0
        while True:
            piece, offset = self.read(offset, most=LONGEST)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)

    def end(self, characters: int) -> str:
        """The last of it."""
        kept = b"".join((self._capture.head, *self._capture.tail))[-4 * characters :]
        return kept.decode("utf-8", "replace")[-characters:]

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
