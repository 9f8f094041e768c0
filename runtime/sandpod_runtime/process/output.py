"""Keeping a command's output within a bound: the beginning and the end stay, the middle goes, and it is
counted.
"""

from collections.abc import Callable

from sandpod_runtime.budget import Budget, Share

# Kept whatever the budget says, so that even a crowded runtime shows how each command began and ended.
FLOOR = 16_384


class Ring:
    """The last bytes of a stream, `capacity` of them at most.

    `grant` says how many more bytes it may hold; once that is fewer than it asks for, it grows no more.
    """

    def __init__(self, capacity: int, *, grant: Callable[[int], int]) -> None:
        self._capacity = capacity
        self._grant = grant
        self._bytes = bytearray()
        self._oldest = 0

    def __len__(self) -> int:
        return len(self._bytes)

    def write(self, data: memoryview) -> None:
        room = min(self._capacity - len(self._bytes), len(data))
        if room:
            granted = self._grant(room)
            self._bytes += data[:granted]
            data = data[granted:]
            if granted < room:
                self._capacity = len(self._bytes)
        if data and self._capacity:
            self._overwrite(data[-self._capacity :])

    def pieces(self) -> tuple[memoryview, memoryview]:
        """The bytes in order, as two views without a copy."""
        view = memoryview(self._bytes)
        return view[self._oldest :], view[: self._oldest]

    def _overwrite(self, data: memoryview) -> None:
        end = self._oldest + len(data)
        over = max(0, end - self._capacity)
        self._bytes[self._oldest : end - over] = data[: len(data) - over]
        self._bytes[:over] = data[len(data) - over :]
        self._oldest = end % self._capacity


class Capture:
    """The output of a buffered call: `limit` bytes of it, half from the beginning and half from the end."""

    def __init__(self, *, limit: int, budget: Budget) -> None:
        self._budget = budget
        self._head_share = Share(budget, floor=FLOOR // 2)
        self._tail_share = Share(budget, floor=FLOOR // 2)
        self._head = bytearray()
        self._head_limit = limit - limit // 2
        self._tail = Ring(limit // 2, grant=self._tail_share.grant)
        self.total = 0
        self.ends_line = True  # nothing was written, or a newline was the last byte

    def write(self, data: bytes) -> bool:
        """Always True: a buffered command is never held back, it would not end."""
        self.total += len(data)
        self.ends_line = data.endswith(b"\n")
        view = memoryview(data)
        if room := min(self._head_limit - len(self._head), len(view)):
            granted = self._head_share.grant(room)
            self._head += view[:granted]
            view = view[granted:]
            if granted < room:
                self._head_limit = len(self._head)
        if view:
            self._tail.write(view)
        return True

    @property
    def head(self) -> memoryview:
        return memoryview(self._head)

    @property
    def tail(self) -> tuple[memoryview, memoryview]:
        return self._tail.pieces()

    @property
    def kept(self) -> int:
        return len(self._head) + len(self._tail)

    @property
    def cut(self) -> int:
        return self.total - self.kept

    def release(self) -> None:
        """Give the memory back, at once: a command and its pipes refer to each other and may linger."""
        self._head_share.release()
        self._tail_share.release()
        self._budget.drop(self.cut)
        self.total = 0
        self._head = bytearray()
        self._tail = Ring(0, grant=lambda _: 0)
