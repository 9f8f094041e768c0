"""Exact replacements: each must fit exactly once, or the error says how often and where it does, and what
comes close.
"""

from collections.abc import Sequence

import msgspec

# As much may an edited file hold, before and after: it is edited in memory.
LARGEST = 32 << 20
# A larger one is not searched for what comes close: that would take its size many times over.
_LARGEST_SEARCHED = 1 << 20
_LINES_TOLD = 20
_NEAR_TOLD = 3
_SHOWN = 200


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    old: bytes
    new: bytes
    everywhere: bool = False


class Near(msgspec.Struct, frozen=True, kw_only=True):
    line: int
    text: str
    difference: str


class TooLargeError(Exception):
    """What this would become is larger than LARGEST."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class UnfitError(Exception):
    """An edit that does not fit: `found` times is its text there, at these lines (the first of them)."""

    def __init__(self, *, index: int, found: int, lines: list[int], near: list[Near]) -> None:
        super().__init__(index)
        self.index = index
        self.found = found
        self.lines = lines
        self.near = near


def replaced(data: bytes, edits: Sequence[Edit]) -> tuple[bytes, list[int]]:
    """The data after all edits, each applied to what the one before it left; and how often each was."""
    counts: list[int] = []
    for index, edit in enumerate(edits):
        found = data.count(edit.old)
        if found == 0:
            raise UnfitError(index=index, found=0, lines=[], near=near_misses(data, edit.old))
        if not edit.everywhere and _is_ambiguous(data, edit.old):
            raise UnfitError(index=index, found=max(2, found), lines=_lines_of(data, edit.old), near=[])
        size = len(data) + found * (len(edit.new) - len(edit.old))
        if size > LARGEST:
            raise TooLargeError(size)
        data = data.replace(edit.old, edit.new)
        counts.append(found)
    return data, counts


def _is_ambiguous(data: bytes, text: bytes) -> bool:
    """Also when it overlaps itself, as "aa" does in "aaa"."""
    return data.find(text, data.find(text) + 1) >= 0


def _lines_of(data: bytes, text: bytes) -> list[int]:
    lines: list[int] = []
    position, line = 0, 1
    while len(lines) < _LINES_TOLD and (at := data.find(text, position)) >= 0:
        line += data.count(b"\n", position, at)
        lines.append(line)
        line += data.count(b"\n", at, at + 1)
        position = at + 1
    return lines


def near_misses(data: bytes, text: bytes) -> list[Near]:
    """Places that would fit but for white space or case, else where the text's first line is."""
    if len(data) > _LARGEST_SEARCHED or len(text) > _LARGEST_SEARCHED:
        return []
    have = [b" ".join(line.split()) for line in data.split(b"\n")]
    want = [b" ".join(line.split()) for line in text.strip().split(b"\n")]
    if not any(want):
        return []
    source = data.split(b"\n")
    for difference, fold in (("white space", False), ("case", True)):
        body, wanted = b"\n".join(have), b"\n".join(want)
        if fold:
            body, wanted = body.lower(), wanted.lower()
        if lines := _lines_of(body, wanted):
            return [_near(source, line, f"differs only in {difference}") for line in lines[:_NEAR_TOLD]]
    return _partial(source, have, want)


def _partial(source: list[bytes], have: list[bytes], want: list[bytes]) -> list[Near]:
    """Where several lines begin as wanted: how far they go, and what comes instead."""
    if len(want) < 2:
        return []
    best: dict[int, int] = {}
    for index, line in enumerate(have):
        if line == want[0]:
            length = 1
            while length < len(want) and have[index + length : index + length + 1] == [want[length]]:
                length += 1
            best[index] = length
            if len(best) == _LINES_TOLD:
                break
    longest = sorted(best, key=lambda index: -best[index])[:_NEAR_TOLD]
    return [
        _near(
            source,
            index + best[index] + 1,
            f"the text fits from line {index + 1} on, but here {_text(want[best[index]])!r} was expected",
        )
        for index in longest
    ]


def _near(source: list[bytes], line: int, difference: str) -> Near:
    text = source[line - 1] if line <= len(source) else b""
    return Near(line=line, text=_text(text), difference=difference)


def _text(line: bytes) -> str:
    return line[: _SHOWN * 4].decode("utf-8", "replace")[:_SHOWN]
