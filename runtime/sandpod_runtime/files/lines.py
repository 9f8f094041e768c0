"""Lines of a file's bytes: where they are, and text put between them. A line ends with LF, which belongs to
it; CR before that is part of its text.
"""

from collections.abc import Iterable

import msgspec


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of some lines, and how many lines there are in all."""

    begin: int
    end: int
    total: int


def span(blocks: Iterable[bytes], *, first: int, last: int | None) -> Span:
    """Where the lines from `first` to `last` (counted from 1, inclusive) are in what `blocks` hold."""
    position = seen = 0
    begin = 0 if first == 1 else None
    end = None
    ending = b"\n"
    for block in blocks:
        count = block.count(b"\n")
        if begin is None and seen + count >= first - 1:
            begin = position + _behind(block, first - 1 - seen)
        if end is None and last is not None and seen + count >= last:
            end = position + _behind(block, last - seen)
        seen += count
        position += len(block)
        ending = block[-1:] or ending
    return Span(
        begin=position if begin is None else begin,
        end=position if end is None else end,
        total=seen + (ending != b"\n"),
    )


def _behind(block: bytes, number: int) -> int:
    """The position after the newline with this number."""
    position = 0
    for _ in range(number):
        position = block.index(b"\n", position) + 1
    return position


def count(data: bytes) -> int:
    return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def inserted(data: bytes, text: bytes, *, line: int) -> bytes | None:
    """`text` so that it begins line number `line`; None if `data` is too short for that.

    It becomes whole lines: a newline is added where it, or the line before it, lacks one.
    """
    total = count(data)
    if line > total + 1:
        return None
    position = span([data], first=line, last=None).begin
    before, after = data[:position], data[position:]
    newline = b"\r\n" if b"\r\n" in (data[: data.find(b"\n") + 1][-2:]) else b"\n"
    if before and not before.endswith(b"\n"):
        before += newline
    if after and text and not text.endswith(b"\n"):
        text += newline
    return b"".join((before, text, after))
