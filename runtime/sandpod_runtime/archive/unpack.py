"""Unpacking: what comes in is told apart, checked member by member, and written below a target."""

import os
from dataclasses import dataclass, field

from sandpod_runtime.archive.inflow import Inflow, LimitError, Limits
from sandpod_runtime.archive.member import BadArchiveError, Member, Reading
from sandpod_runtime.archive.tar_format import BLOCK, TarReader
from sandpod_runtime.archive.target import SkippedError, Target
from sandpod_runtime.disk import write_all
from sandpod_runtime.paths import shown

MOST_NAMED = 100
_LONGEST_NAME = 4096
_PIECE = 262_144


@dataclass(kw_only=True, slots=True)
class Tally:
    """What was done so far; also told when the rest failed."""

    entries: int = 0
    bytes: int = 0
    # How many were left out, and the first of them with the reasons.
    skipped_count: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def skip(self, name: str, reason: str) -> None:
        self.skipped_count += 1
        if len(self.skipped) < MOST_NAMED:
            self.skipped.append((name, reason))


class Unpacking:
    """One archive on its way into a target."""

    def __init__(self, *, target: Target, limits: Limits, tally: Tally) -> None:
        self.target = target
        self.limits = limits
        self.tally = tally
        self._seen = 0

    def admit(self, member: Member) -> list[str] | None:
        """The names that lead to where the member goes; None when it is left out. Raises LimitError."""
        self._seen += 1
        if self._seen > self.limits.entries:
            raise LimitError(
                f"the archive has more than {self.limits.entries} entries, which is the limit (maxEntries)",
                limit=self.limits.entries,
                found=self._seen,
            )
        if member.size > self.limits.file:
            raise LimitError(
                f"{shortly(member.name)} has {member.size} bytes; the limit is {self.limits.file} "
                "(maxFileBytes)",
                limit=self.limits.file,
                found=member.size,
            )
        if member.kind == "other":
            self.tally.skip(member.name, member.reason)
            return None
        try:
            names = inside(member.name)
        except SkippedError as error:
            self.tally.skip(member.name, str(error))
            return None
        if len(names) > self.limits.depth:
            raise LimitError(
                f"a path in the archive is {len(names)} names deep; the limit is {self.limits.depth}",
                limit=self.limits.depth,
                found=len(names),
            )
        # The root itself: the target is there already, and stays as it is.
        return names or None

    def place(self, member: Member, names: list[str]) -> None:
        """Whatever has no data."""
        try:
            if member.kind == "directory":
                self.target.directory(member, names)
            elif member.kind == "symlink":
                self.target.symlink(member, names)
            else:
                self.target.hardlink(names, inside(member.target))
        except SkippedError as error:
            self.tally.skip(member.name, str(error))
        else:
            self.tally.entries += 1


def inside(name: str) -> list[str]:
    """The names of a path in an archive; raises SkippedError for one that leads elsewhere."""
    if name.startswith("/"):
        raise SkippedError("an absolute name")
    if len(os.fsencode(name)) > _LONGEST_NAME:
        raise SkippedError(f"a name of more than {_LONGEST_NAME} bytes")
    names = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in names:
        raise SkippedError("a name with ..")
    return names


def shortly(name: str) -> str:
    return shown(name)[:200]


def unpack_tar(inflow: Inflow, unpacking: Unpacking) -> Reading[None]:
    reader = TarReader(inflow)
    while (member := (yield from reader.next())) is not None:
        names = unpacking.admit(member)
        left = member.size
        if names is not None and member.kind == "file":
            left = yield from _tar_file(inflow, unpacking, member, names)
        elif names is not None:
            unpacking.place(member, names)
        left += -member.size % BLOCK
        while left:
            left -= len((yield from _something(inflow, left)))
    yield from inflow.drain()


def _tar_file(inflow: Inflow, unpacking: Unpacking, member: Member, names: list[str]) -> Reading[int]:
    """How many of its bytes are still to come, because it was left out."""
    left = member.size
    try:
        with unpacking.target.file(member, names) as descriptor:
            while left:
                piece = yield from _something(inflow, left)
                left -= len(piece)
                write_all(descriptor, piece)
                unpacking.tally.bytes += len(piece)
    except SkippedError as error:
        unpacking.tally.skip(member.name, str(error))
    else:
        unpacking.tally.entries += 1
    return left


def _something(inflow: Inflow, most: int) -> Reading[bytes]:
    piece = yield from inflow.some(min(most, _PIECE))
    if not piece:
        raise BadArchiveError("the archive ends too early")
    return piece
