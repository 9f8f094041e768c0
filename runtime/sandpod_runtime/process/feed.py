"""Output on its way from a command's pipes to one reader, who may be slow: bounded, in order, and never
cut.
"""

import asyncio
from collections import deque

# Above the first the pipes are not read, below the second they are again.
FULL = 524_288
ROOM = 262_144
# Small pieces that are waiting leave together, as one event.
_JOINED = 262_144


class Feed:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self.size = 0
        self.ended = False

    @property
    def has_room(self) -> bool:
        return self.size < ROOM

    @property
    def is_quiet(self) -> bool:
        """Nothing waits, and more may come."""
        return not self._waiting and not self.ended

    def write(self, name: str, data: bytes) -> bool:
        self._waiting.append((name, data))
        self.size += len(data)
        self._wake()
        return self.size < FULL

    def end(self) -> None:
        self.ended = True
        self._wake()

    def pop(self) -> tuple[str, bytes] | None:
        """The next output and the name of its stream; None when nothing waits."""
        if not self._waiting:
            return None
        name, data = self._waiting.popleft()
        if self._waiting and self._waiting[0][0] == name and len(data) < _JOINED:
            parts = [data]
            joined = len(data)
            while self._waiting and self._waiting[0][0] == name and joined < _JOINED:
                parts.append(self._waiting.popleft()[1])
                joined += len(parts[-1])
            data = b"".join(parts)
        self.size -= len(data)
        return name, data

    async def wait(self, seconds: float) -> None:
        """Until there is output, or the end, or so much time has passed."""
        if self._waiting or self.ended:
            return
        self._waiter = self._loop.create_future()
        timer = self._loop.call_later(seconds, self._wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
