"""Who belongs to a command, and ending all of them: also those that left its group, session and parents."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable

import msgspec

from sandpod_runtime.process import procfs
from sandpod_runtime.process.marks import Marks

GRACE = 5.0
# After SIGKILL only a process stuck in the kernel or of another user remains; nobody waits for ever.
PATIENCE = 5.0
_FIRST_PAUSE = 0.002
_LAST_PAUSE = 0.05
# Many commands may be ending at once: they share a look at /proc that is this fresh, or no older than it took
# to look. Otherwise a crowd that is killed would keep everybody else waiting for looks.
_FRESH = 0.002
# A process may start another and end while we look: then one look shows neither, and the next one shows it.
_ENOUGH_LOOKS = 2
# Where processes come and go all the time, no look at /proc is complete; so many empty ones are enough.
_EMPTY_LOOKS = 5


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Living processes, what to signal to reach them all, whether none can have been missed, and which look
    at /proc it was that showed them.
    """

    pids: set[int]
    targets: set[int]
    complete: bool
    look: int


class ProcessTable:
    """What /proc says about the descendants of this process, and the marks that they bear."""

    def __init__(self, marks: Marks, *, spared: int | None = None) -> None:
        """`spared` is a process below the runtime that is nobody's, and ends with it."""
        self._marks = marks
        self._spared = spared
        self._own = os.getpid()
        self._own_group = os.getpgrp()
        self._stale_at = float("-inf")
        self._looks = 0
        self._begun_at = float("-inf")
        self._complete = False
        self._alive: dict[int, procfs.Stat] = {}
        self._children: dict[int, list[int]] = {}
        self._bearers: dict[int, list[int]] = {}

    def descendants(self, since: float) -> Found:
        """All that lives below the runtime."""
        self._look_again(since)
        return self._found(self._below([self._own]) - {self._spared})

    def members(self, *, root: int | None, mark: int, since: float) -> Found:
        """What lives of a command: below its shell (`root`, until it is reaped), or with its mark. Not as it
        was before `since`.
        """
        self._look_again(since)
        starts = list(self._bearers.get(mark, ()))
        if root is not None:
            starts.append(root)
        return self._found({*starts, *self._below(starts)})

    def _found(self, pids: Iterable[int]) -> Found:
        groups = {pid: self._alive[pid].group for pid in pids if pid in self._alive}
        # By group, for only that reaches a process that is being forked at this moment. A group lies within
        # a session, and every command has sessions of its own. Not both ways: many programs take a second
        # SIGTERM for impatience.
        targets = {pid if group in (0, self._own_group) else -group for pid, group in groups.items()}
        return Found(pids=set(groups), targets=targets, complete=self._complete, look=self._looks)

    def _look_again(self, since: float) -> None:
        begun = time.monotonic()
        if self._begun_at >= since and begun <= self._stale_at:
            return
        self._begun_at = begun
        self._looks += 1
        processes, self._complete = procfs.processes()
        self._children = {}
        for pid, stat in processes.items():
            self._children.setdefault(stat.parent, []).append(pid)
        self._alive = {pid: stat for pid, stat in processes.items() if stat.state not in procfs.DEAD}
        self._bearers = {}
        # Some may have lost their parents between two reads, and not appear below us for that reason.
        lost = [pid for pid, stat in processes.items() if stat.parent and stat.parent not in processes]
        for pid in {*lost, *self._below([self._own, *lost])} & self._alive.keys():
            try:
                mark = self._marks.of(pid)
            except ProcessLookupError:
                self._complete = False
                continue
            if mark is not None:
                self._bearers.setdefault(mark, []).append(pid)
        now = time.monotonic()
        self._stale_at = now + max(_FRESH, now - begun)

    def _below(self, starts: Iterable[int]) -> set[int]:
        found: set[int] = set()
        waiting = list(starts)
        while waiting:
            children = self._children.get(waiting.pop(), ())
            found.update(children)
            waiting += children
        return found


def send(found: Found, number: int) -> None:
    for target in found.targets:
        # It ended by itself, or runs as another user (sudo): the caller looks again and sees which.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(target, number)


async def end(find: Callable[[float], Found], *, grace: float = GRACE, patience: float = PATIENCE) -> bool:
    """SIGTERM to all that `find` finds, SIGKILL after `grace`; False when something outlives even that."""
    since = time.monotonic()
    await asyncio.sleep(0)  # so that all who begin in this turn share a look
    found = find(since)
    send(found, signal.SIGTERM)
    send(found, signal.SIGCONT)  # a stopped process would not hear the first
    if await _gone(find, since, seconds=grace):
        return True
    return await _gone(find, since, seconds=patience, kill=True)


async def _gone(find: Callable[[float], Found], since: float, *, seconds: float, kill: bool = False) -> bool:
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    empty: set[int] = set()
    while True:
        found = find(since)
        if found.pids:
            empty.clear()
            if kill:
                # Again and again: a process may fork between the look and the signal.
                send(found, signal.SIGKILL)
        else:
            empty.add(found.look)
            if len(empty) >= (_ENOUGH_LOOKS if found.complete else _EMPTY_LOOKS):
                return True
        if time.monotonic() > deadline:
            return False
        since = time.monotonic()
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LAST_PAUSE)
