"""One running command: its process, its pipes, its deadline, and its end with all that it started.

It belongs to nobody's request: a client may leave while it runs. `ended` is a future that always comes.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

import msgspec

from sandpod_runtime.process import tree
from sandpod_runtime.process.hub import Readers
from sandpod_runtime.process.pipe import InputPipe, OutputPipe, Sink, discard
from sandpod_runtime.process.spawn import Child

# How long output may still arrive after the shell has gone, when a child in the background holds the pipe.
DRAIN = 0.5
TIMED_OUT = 124
KILLED = 137


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    exit_code: int
    timed_out: bool
    seconds: float


class Command:
    def __init__(
        self,
        *,
        child: Child,
        begun: float,
        mark: int,
        table: tree.ProcessTable,
        readers: Readers,
        stdin: bytes,
        stdin_done: Callable[[], None],
        stdin_open: bool,
        stdout: Sink,
        stderr: Sink,
        timeout: float | None,
        adopt: Callable[[OutputPipe], None],
        collect: Callable[[], None],
    ) -> None:
        """`adopt` takes the pipes that a background process still holds when the command has ended. `collect`
        lets the reaper look at once.
        """
        loop = asyncio.get_running_loop()
        self.pid = child.pid
        self.shown_pid = child.shown_pid
        # For waiting there is `ending()`: whoever awaits this future itself would cancel it for all.
        self.ended: asyncio.Future[Ending] = loop.create_future()
        self._waiters: list[asyncio.Future[Ending]] = []
        self._loop = loop
        self._mark = mark
        self._table = table
        self._adopt = adopt
        self._collect = collect
        self._begun = begun
        self._exit_code: int | None = None
        self._timed_out = False
        self._killing: asyncio.Task[None] | None = None
        self._drain: asyncio.TimerHandle | None = None
        self.input = (
            None
            if child.stdin is None
            else InputPipe(child.stdin, loop=loop, data=stdin, on_taken=stdin_done, keep_open=stdin_open)
        )
        self._pipes = [
            OutputPipe(descriptor, readers=readers, sink=sink, on_end=self._pipe_ended)
            for descriptor, sink in ((child.stdout, stdout), (child.stderr, stderr))
        ]
        self._deadline = None if timeout is None else loop.call_later(timeout, self._time_out)

    @property
    def has_exited(self) -> bool:
        """Its shell has ended; some of its output may still be on its way."""
        return self._exit_code is not None

    def exited(self, status: int) -> None:
        """The reaper's word that the shell has ended."""
        code = os.waitstatus_to_exitcode(status)
        self._exit_code = code if code >= 0 else 128 - code
        if self._deadline is not None:
            # What still runs in the background is not the command, and has no deadline.
            self._deadline.cancel()
        self._settle()
        if not self.ended.done() and self._killing is None:
            self._drain = self._loop.call_later(DRAIN, self._stop_draining)

    async def ending(self) -> Ending:
        """Sooner than by `asyncio.shield(ended)`, which takes two more rounds of the loop."""
        if self.ended.done():
            return self.ended.result()
        waiter: asyncio.Future[Ending] = self._loop.create_future()
        self._waiters.append(waiter)
        return await waiter

    def resume(self) -> None:
        """The reader has room again."""
        for pipe in self._pipes:
            pipe.resume()

    def detach(self, stdout: Sink = discard, stderr: Sink = discard) -> None:
        """The reader has gone: the command goes on, and what it writes goes elsewhere."""
        for pipe, sink in zip(self._pipes, (stdout, stderr), strict=False):
            pipe.divert(sink)

    def stop(self) -> None:
        """End the whole tree now, and drop what it still writes; `ended` follows."""
        self.detach()
        self.kill()

    def kill(self) -> None:
        """End the whole tree now; `ended` follows."""
        if self._killing is None and not self.ended.done():
            self._killing = self._loop.create_task(self._end_tree())

    def signal(self, number: int, *, whole_tree: bool) -> None:
        if whole_tree:
            tree.send(self._members(time.monotonic()), number)
        elif self._exit_code is None:
            # It is not reaped yet, so that the pid is still its own.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def _time_out(self) -> None:
        if not self.ended.done():
            self._timed_out = True
            self.kill()

    async def _end_tree(self) -> None:
        try:
            await tree.end(self._members)
        finally:
            if self._exit_code is None:
                # Dead, and the reaper has not come yet; or beyond our reach. Either way it is over.
                self._exit_code = KILLED
            for pipe in self._pipes:
                pipe.finish()
            self._killing = None
            self._settle()

    def _members(self, since: float) -> tree.Found:
        root = self.pid if self._exit_code is None else None
        return self._table.members(root=root, mark=self._mark, since=since)

    def _stop_draining(self) -> None:
        for pipe in self._pipes:
            pipe.finish()

    def _pipe_ended(self) -> None:
        if self._exit_code is None and all(pipe.ended for pipe in self._pipes):
            # Then it has most likely exited: sooner known than when the signal has come its way.
            self._collect()
        self._settle()

    def _settle(self) -> None:
        if self.ended.done() or self._exit_code is None or self._killing is not None:
            return
        if not all(pipe.ended for pipe in self._pipes):
            return
        if self._drain is not None:
            self._drain.cancel()
        if self.input is not None:
            self.input.close()
        for pipe in self._pipes:
            if pipe.is_open:
                self._adopt(pipe)
        # They refer to this object: without them it goes with its last user, not when the collector comes.
        self._pipes = []
        ending = Ending(
            exit_code=TIMED_OUT if self._timed_out else self._exit_code,
            timed_out=self._timed_out,
            seconds=time.monotonic() - self._begun,
        )
        self.ended.set_result(ending)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(ending)
        self._waiters.clear()
