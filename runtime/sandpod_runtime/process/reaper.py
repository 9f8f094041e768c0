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
        self._loop = loop
        # The loop's own way for signals takes two more of its rounds, and every command waits for that. Any
        # handler of its own, also one that nobody needs, makes it wake up for this one too.
        loop.add_signal_handler(signal.SIGWINCH, lambda: None)
        signal.signal(signal.SIGCHLD, self._notice)
        signal.siginterrupt(signal.SIGCHLD, False)

    def watch(self, pid: int, on_exit: Callable[[int], None]) -> None:
        """`on_exit` gets the wait status. A child that has ended already is reported as well, from the
        loop.
        """
        self._watched[pid] = on_exit

    def _notice(self, *_: object) -> None:
        """Comes between any two steps of other code: it may only leave a note."""
        if not self._loop.is_closed():
            self._loop.call_soon(self.collect)

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
