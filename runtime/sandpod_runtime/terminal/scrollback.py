"""The last output of a terminal, kept for those who attach later: a ring of bounded size, on the budget."""

from sandpod_runtime.budget import Budget, Share
from sandpod_runtime.process.output import Ring

SIZE = 262_144
# Kept whatever the budget says: a screen or two.
FLOOR = 16_384


class Scrollback:
    def __init__(self, memory: Budget) -> None:
        self._share = Share(memory, floor=FLOOR)
        self._ring = Ring(SIZE, grant=self._share.grant)

    def write(self, data: bytes) -> None:
        self._ring.write(memoryview(data))

    def content(self) -> bytes:
        """Raw bytes: the oldest may be half a character."""
        return b"".join(self._ring.pieces())

    def release(self) -> None:
        """Nothing more will be written, and the last readers are about to come or not."""
        self._share.release()
