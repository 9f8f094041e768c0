"""Reading /proc: small, pure parsers, and a reader cheap enough to walk every process many times a second."""

import os
import re
from dataclasses import dataclass

_LIMIT = re.compile(rb"^Max realtime timeout +(\d+) ", re.MULTILINE)
_NUMBERS = re.compile(rb"^NSpid:.*?(\d+)$", re.MULTILINE)
_PIECE = 65_536
DEAD = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class Stat:
    state: str
    parent: int
    group: int


def read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = piece = os.read(descriptor, _PIECE)
        while piece:
            piece = os.read(descriptor, _PIECE)
            found += piece
        return found
    finally:
        os.close(descriptor)


def processes() -> tuple[dict[int, Stat], bool]:
    """Every process that can be seen, also the dead and unreaped; False when some ended while we looked."""
    found: dict[int, Stat] = {}
    complete = True
    names = os.listdir("/proc")  # noqa: PTH208 (a Path for each process is most of the cost)
    # The youngest first: they are the ones that may be gone in a moment.
    for pid in sorted((int(name) for name in names if name.isdecimal()), reverse=True):
        try:
            found[pid] = parse_stat(read(f"/proc/{pid}/stat"))
        except (FileNotFoundError, ProcessLookupError):
            complete = False
    return found, complete


def parse_stat(stat: bytes) -> Stat:
    # The program's name stands in parentheses and may itself hold spaces and parentheses.
    state, parent, group = stat[stat.rindex(b")") + 2 :].split(b" ", 3)[:3]
    return Stat(state=state.decode("ascii"), parent=int(parent), group=int(group))


def realtime_limit(limits: bytes) -> int | None:
    """The soft limit of real-time CPU time in a /proc/<pid>/limits; None when it is unlimited."""
    found = _LIMIT.search(limits)
    return int(found[1]) if found else None


def innermost_pid(status: bytes) -> int:
    """From a /proc/<pid>/status: the number that the process itself knows."""
    found = _NUMBERS.search(status)
    if found is None:
        raise OSError("this kernel does not tell the numbers of a process")
    return int(found[1])


def variable(environ: bytes, *, name: str) -> str | None:
    """A variable's value in a /proc/<pid>/environ."""
    prefix = name.encode() + b"="
    for entry in environ.split(b"\0"):
        if entry.startswith(prefix):
            return os.fsdecode(entry[len(prefix) :])
    return None
