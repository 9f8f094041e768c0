"""Server-sent events out of bytes, in whatever pieces they arrive. Pure; what it holds back is bounded."""

from __future__ import annotations

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """An event grew beyond the bound before it ended."""


class EventParser:
    """`feed` returns the data of the events that a piece completes. Comments, ids and names are skipped.

    An event that the stream's end cuts off is not reported: that is what the standard says, and it is how a
    reader learns that the last word is missing.
    """

    def __init__(self, *, max_event_bytes: int) -> None:
        self._max = max_event_bytes
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._held = 0
        self._after_return = False
        self._at_start = True

    def feed(self, piece: bytes) -> list[bytes]:
        # The second half of a CRLF that was split between two pieces is not a line of its own.
        if self._after_return and piece:
            self._after_return = False
            piece = piece.removeprefix(b"\n")
        if not piece:
            return []
        self._after_return = piece.endswith(b"\r")
        lines = _LINE_END.split(piece)
        events: list[bytes] = []
        for line in lines[:-1]:
            self._hold(line)
            whole = b"".join(self._line)
            self._line.clear()
            if (event := self._take(whole)) is not None:
                events.append(event)
        self._hold(lines[-1])
        return events

    def _hold(self, part: bytes) -> None:
        if part:
            self._line.append(part)
            self._held += len(part)
            if self._held > self._max:
                raise EventTooLarge(f"an event is larger than {self._max} bytes")

    def _take(self, line: bytes) -> bytes | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            event = b"\n".join(self._data) if self._data else None
            self._data.clear()
            self._held = 0
            return event
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        else:
            self._held -= len(line)
        return None
