"""One account for the memory that clients and commands can make the runtime hold.

Each body and each output has a bound of its own; this one is for all of them together, because a sandbox
whose runtime is killed for memory loses everything that runs in it.
"""

import os
from collections.abc import Iterable
from pathlib import Path

LARGEST = 1 << 30
SMALLEST = 32 << 20
_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Budget:
    def __init__(self, total: int) -> None:
        self.total = total
        # Bytes of output that were not kept, for want of room or beyond what a caller or a log keeps.
        self.dropped = 0
        self._taken = 0

    @property
    def taken(self) -> int:
        return self._taken

    def take(self, count: int) -> bool:
        if self._taken + count > self.total:
            return False
        self._taken += count
        return True

    def give(self, count: int) -> None:
        self._taken -= count

    def drop(self, count: int) -> None:
        self.dropped += count


class Share:
    """What one output holds of the budget. The first bytes, `floor` of them, it may have whatever the budget
    says.
    """

    def __init__(self, budget: Budget, *, floor: int) -> None:
        self._budget = budget
        self._free = floor
        self._charged = 0

    def grant(self, count: int) -> int:
        """How many of so many more bytes may be held: all of them, or what the floor has left."""
        free = min(self._free, count)
        self._free -= free
        if not self._budget.take(count - free):
            return free
        self._charged += count - free
        return count

    def release(self) -> None:
        self._budget.give(self._charged)
        self._charged = 0


def for_this_machine(*, limit_files: Iterable[str | Path] = _LIMIT_FILES) -> Budget:
    """Half of what the container may use."""
    return Budget(min(LARGEST, max(SMALLEST, _memory(limit_files) // 2)))


def _memory(limit_files: Iterable[str | Path]) -> int:
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in limit_files:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            return min(present, int(text))
    return present
