"""What a process wrote lately: of each stream the last bytes, which keep their offsets since its start, and
readers that follow at their own pace.

Readers have a place in the log and no queue: one that is slow holds back nobody and costs no memory; it
misses what was overwritten before it came, and learns how much that was.
"""

import asyncio

from sandpod_runtime.budget import Budget, Share
from sandpod_runtime.models.processes import StreamName
from sandpod_runtime.process.output import Ring

CAPACITY = 4 << 20
# Kept of each stream whatever the budget says.
FLOOR = 4096


class StreamLog:
    def __init__(self, *, memory: Budget, capacity: int = CAPACITY) -> None:
        self.total = 0
        self.ends_line = True  # nothing was written, or a newline was the last byte
        self._memory = memory
        self._share = Share(memory, floor=FLOOR)
        self._ring = Ring(capacity, grant=self._share.grant)

    @property
    def start(self) -> int:
        """The offset of the oldest byte that is still there."""
        return self.total - len(self._ring)

    def write(self, data: bytes) -> None:
        before = self.start
        self.total += len(data)
        self.ends_line = data.endswith(b"\n")
        self._ring.write(memoryview(data))
        self._memory.drop(self.start - before)

    def read(self, offset: int, most: int = CAPACITY) -> bytes:
        """At most so many bytes from there on, or from the oldest that is left."""
        first, second = self._ring.pieces()
        skip = max(0, offset - self.start)
        found = first[skip : skip + most]
        if skip + most <= len(first):
            return bytes(found)
        skip = max(0, skip - len(first))
        return b"".join((found, second[skip : skip + most - len(found)]))

    def release(self) -> None:
        """Forget it all; the offsets stay."""
        self._ring = Ring(0, grant=lambda _: 0)
        self._share.release()


class Logbook:
    """Both streams of a process, and who waits for more."""

    def __init__(self, *, memory: Budget) -> None:
        self.stdout = StreamLog(memory=memory)
        self.stderr = StreamLog(memory=memory)
        self.closed = False
        self._waiting: set[asyncio.Future[None]] = set()

    def streams(self) -> tuple[tuple[StreamName, StreamLog], tuple[StreamName, StreamLog]]:
        return ("stdout", self.stdout), ("stderr", self.stderr)

    def write_stdout(self, data: bytes) -> bool:
        self.stdout.write(data)
        self.wake()
        return True

    def write_stderr(self, data: bytes) -> bool:
        self.stderr.write(data)
        self.wake()
        return True

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self.wake()

    def release(self) -> None:
        self.stdout.release()
        self.stderr.release()

    def wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def more(self, seconds: float | None) -> bool:
        """Until something is written after this call, or the end comes; False when that takes longer."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await asyncio.wait((waiter,), timeout=seconds)
            return waiter.done()
        finally:
            self._waiting.discard(waiter)
