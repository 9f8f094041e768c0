"""What a command gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """A piece of a command's output, as it came: bytes, cut anywhere."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Captured:
    """What was kept of one stream: all of it, or beginning and end with `cut` bytes missing between them."""

    head: bytes
    tail: bytes = b""
    cut: int = 0

    @property
    def data(self) -> bytes:
        # No mark where something is missing: in binary output it would be taken for a part of it.
        return self.head + self.tail

    @property
    def text(self) -> str:
        note = f"\n[{self.cut} bytes of output were cut here]\n"
        if not self.cut:
            return self.data.decode(errors="replace")
        return self.head.decode(errors="replace") + note + self.tail.decode(errors="replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecResult:
    """A command that has ended. `exit_code` is 124 when the timeout ended it, 128 + N when signal N did.

    `stdout` and `stderr` are text, in which U+FFFD stands for what is not UTF-8, and which says where
    something is cut out (`truncated`). The bytes are as they came.
    """

    exit_code: int
    out: Captured
    err: Captured
    # Seconds, as seen from here.
    duration: float

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def truncated(self) -> bool:
        return self.out.cut > 0 or self.err.cut > 0

    @property
    def stdout(self) -> str:
        return self.out.text

    @property
    def stderr(self) -> str:
        return self.err.text

    @property
    def stdout_bytes(self) -> bytes:
        return self.out.data

    @property
    def stderr_bytes(self) -> bytes:
        return self.err.data


class Keeper:
    """Keeps output up to a bound, and of what is longer the beginning and the end."""

    def __init__(self, *, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def add(self, data: bytes) -> None:
        room = self._head_room - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Cutting at twice the room, not at every piece, keeps the copying in proportion to what arrives.
        if len(self._tail) > 2 * self._tail_room:
            self._trim()

    def captured(self) -> Captured:
        self._trim()
        return Captured(head=bytes(self._head), tail=bytes(self._tail), cut=self._cut)

    def _trim(self) -> None:
        excess = len(self._tail) - self._tail_room
        if excess > 0:
            self._cut += excess
            del self._tail[:excess]
