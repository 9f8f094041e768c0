"""All commands that run, and the bound on how many may."""

import asyncio
import logging
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from sandpod_runtime.errors import Fault
from sandpod_runtime.process import tree
from sandpod_runtime.process.command import Command, Ending
from sandpod_runtime.process.hub import Hub
from sandpod_runtime.process.leader import Leader
from sandpod_runtime.process.marks import Marks
from sandpod_runtime.process.pipe import OutputPipe, Sink
from sandpod_runtime.process.reaper import Reaper
from sandpod_runtime.process.spawn import Program, Spawner

if TYPE_CHECKING:
    from sandpod_runtime.strict.world import World

LIMIT = 256
# Pipes of ended commands that a background process still holds; beyond this the oldest is closed.
_LINGERING = 256
# When the runtime itself is told to stop, commands get less time than a timeout gives them.
_SHUTDOWN_GRACE = 2.0

logger = logging.getLogger(__name__)


class TooManyCommandsError(Fault):
    """As many commands run as may."""

    def __init__(self) -> None:
        super().__init__(
            "RESOURCE_BUSY",
            f"{LIMIT} commands are running, which is the limit",
            suggestion="wait for one to end, or give commands a timeoutMs",
        )


class Commands:
    def __init__(self, *, open_files: int | None, world: "World | None" = None) -> None:
        self._spawner = Spawner(open_files=open_files, world=world)
        self._marks = Marks()
        self._table = tree.ProcessTable(self._marks, spared=None if world is None else world.first)
        self._reaper = Reaper(asyncio.get_running_loop())
        self.readers = Hub(asyncio.get_running_loop())
        self._running: set[Command] = set()
        self._closed = False
        self._lingering: deque[OutputPipe] = deque()
        if world is not None:
            self._reaper.watch(world.first, self._lost_world)

    def __len__(self) -> int:
        return len(self._running)

    def start(
        self,
        program: Program,
        *,
        stdin: bytes | None,
        stdin_done: Callable[[], None],
        stdout: Sink,
        stderr: Sink,
        timeout: float | None,
        stdin_open: bool = False,
    ) -> Command:
        """Raises Fault (too many, or the runtime is stopping) or SpawnError, and then has done nothing.

        `stdin_done` is told, later than this call, that `stdin` is no longer held. With `stdin_open` the
        command's input can be written to until somebody ends it.
        """
        self._refuse_when_closed()
        if len(self._running) >= LIMIT:
            raise TooManyCommandsError
        mark = self._marks.new()
        environ = self._marks.put_on(mark, program.environ)
        begun = time.monotonic()
        child = self._spawner.start(program, environ=environ, with_stdin=stdin is not None)
        command = Command(
            child=child,
            begun=begun,
            mark=mark,
            table=self._table,
            readers=self.readers,
            stdin=stdin or b"",
            stdin_done=stdin_done,
            stdin_open=stdin_open,
            stdout=stdout,
            stderr=stderr,
            timeout=timeout,
            adopt=self.adopt,
            collect=self._reaper.collect,
        )
        self._reaper.watch(child.pid, command.exited)
        self._running.add(command)
        command.ended.add_done_callback(lambda ended: self._over(command, ended))
        return command

    def start_on_terminal(self, program: Program, *, terminal: str, on_exit: Callable[[int], None]) -> Leader:
        """The program gets `terminal` (/dev/pts/…) as its controlling terminal. Raises as `start` does."""
        self._refuse_when_closed()
        mark = self._marks.new()
        environ = self._marks.put_on(mark, program.environ)
        pid = self._spawner.start_on_terminal(program, environ=environ, terminal=terminal)
        leader = Leader(
            pid=pid,
            shown_pid=self._spawner.shown_pid(pid),
            mark=mark,
            table=self._table,
            on_exit=on_exit,
        )
        self._reaper.watch(pid, leader.exited)
        return leader

    async def end_all(self) -> None:
        """End every process below the runtime, also those that commands left in the background. From now on
        nothing starts.
        """
        self._closed = True
        if not await tree.end(self._table.descendants, grace=_SHUTDOWN_GRACE):
            logger.warning(
                "processes outlived SIGKILL",
                extra={"pids": sorted(self._table.descendants(time.monotonic()).pids)},
            )

    def _lost_world(self, status: int) -> None:
        """With its first process, the kernel has ended all others, and would start no more."""
        logger.error("the first process of the commands' world has ended", extra={"status": status})
        signal.raise_signal(signal.SIGTERM)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            # Its request was admitted before the end began, and its body came after.
            raise Fault("CONTAINER_UNAVAILABLE", "the runtime is stopping; nothing was done")

    def _over(self, command: Command, ended: "asyncio.Future[Ending]") -> None:
        self._running.discard(command)
        ending = ended.result()
        logger.debug(
            "command ended",
            extra={
                "pid": command.pid,
                "exitCode": ending.exit_code,
                "timedOut": ending.timed_out,
                "durationMs": round(ending.seconds * 1000),
            },
        )

    def adopt(self, pipe: OutputPipe) -> None:
        """Read on what a process in the background writes after the end of its command."""
        if len(self._lingering) >= _LINGERING:
            self._lingering.popleft().close()
        self._lingering.append(pipe)
        pipe.linger(self._lingering.remove)
