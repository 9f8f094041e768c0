"""Output on its way to one socket, whose client may be slow: bounded, and cut off when too far behind."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sandpod_runtime.budget import Budget

# With more than the first waiting, a viewer wants no more for now; with less than the second it does again.
FULL = 262_144
ROOM = 131_072
# Others may still want more; who has so much waiting is cut off.
LIMIT = 1 << 20
# Small pieces that are waiting leave together, as one frame.
_JOINED = 65_536

TRY_AGAIN = 1013


@dataclass(frozen=True, kw_only=True, slots=True)
class Farewell:
    """How a socket is closed: its code, a reason, and a last text frame."""

    code: int
    reason: str
    message: bytes | None = None


TOO_SLOW = Farewell(code=TRY_AGAIN, reason="too slow: the output did not get through; attach again")
NO_MEMORY = Farewell(code=TRY_AGAIN, reason="the memory for outputs is in use; attach again later")


class Viewer:
    def __init__(self, *, memory: Budget, on_room: Callable[[], None]) -> None:
        self.was_cut: asyncio.Future[Farewell] = asyncio.get_running_loop().create_future()
        self.has_room = True
        self._memory = memory
        self._on_room = on_room
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._farewell: Farewell | None = None
        self._arrived = asyncio.Event()

    def push(self, data: bytes) -> None:
        if self._farewell is not None:
            return
        if self._size + len(data) > LIMIT:
            self.cut(TOO_SLOW)
        elif not self._memory.take(len(data)):
            self.cut(NO_MEMORY)
        else:
            self._waiting.append(data)
            self._size += len(data)
            self.has_room = self._size < FULL
            self._arrived.set()

    def finish(self, farewell: Farewell) -> None:
        """To be closed when all that waits has been sent."""
        self._farewell = self._farewell or farewell
        self._arrived.set()

    def cut(self, farewell: Farewell) -> None:
        """To be closed now, without what waits."""
        self.drop()
        self._farewell = farewell
        self._arrived.set()
        if not self.was_cut.done():
            self.was_cut.set_result(farewell)

    def drop(self) -> None:
        self._waiting.clear()
        self._memory.give(self._size)
        self._size = 0

    async def next(self, seconds: float) -> bytes | Farewell | None:
        """Output, or the farewell that follows all of it; None when there was nothing for so long."""
        if not self._waiting and self._farewell is None:
            self._arrived.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return None
        return self._pop() if self._waiting else self._farewell

    def _pop(self) -> bytes:
        parts = [self._waiting.popleft()]
        size = len(parts[0])
        while self._waiting and size + len(self._waiting[0]) <= _JOINED:
            parts.append(self._waiting.popleft())
            size += len(parts[-1])
        self._size -= size
        self._memory.give(size)
        if not self.has_room and self._size < ROOM:
            self.has_room = True
            self._on_room()
        return b"".join(parts)
