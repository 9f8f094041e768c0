"""The one place that waits for children: ours, whose starter is told the status, and orphans, who only
need burial.

As PID 1 (or as a subreaper) the runtime inherits every process whose parent has gone. Nothing else in the
runtime may wait for a child, or one of the two would miss its status.
"""

import asyncio
import os
import signal
from collections.abc import Callable


class Reaper:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._watched: dict[int, Callable[[int], None]] = {}
        loop.add_signal_handler(signal.SIGCHLD, self.collect)

    def watch(self, pid: int, on_exit: Callable[[int], None]) -> None:
        """`on_exit` gets the wait status. A child that has ended already is reported as well, from the
        loop.
        """
        self._watched[pid] = on_exit

    def collect(self) -> None:
        """Bury all that are dead now."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if on_exit := self._watched.pop(pid, None):
                on_exit(status)
