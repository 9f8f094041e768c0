"""A program that leads a terminal: its processes are found as those of a command are, and it has no pipes."""

import time
from collections.abc import Callable

from sandpod_runtime.process import tree


class Leader:
    def __init__(
        self,
        *,
        pid: int,
        shown_pid: int,
        mark: int,
        table: tree.ProcessTable,
        on_exit: Callable[[int], None],
    ) -> None:
        """`on_exit` gets the wait status."""
        self.pid = pid
        self.shown_pid = shown_pid
        self._mark = mark
        self._table = table
        self._on_exit = on_exit
        self._lives = True

    def exited(self, status: int) -> None:
        """The reaper's word: from now on the pid may be another process's."""
        self._lives = False
        self._on_exit(status)

    def members(self, since: float) -> tree.Found:
        return self._table.members(root=self.pid if self._lives else None, mark=self._mark, since=since)

    def has_started(self) -> int:
        """How many processes it has started that live now: what was seen a moment ago may have ended."""
        return len(self.members(time.monotonic()).pids - {self.pid})
