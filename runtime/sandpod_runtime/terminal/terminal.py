"""One terminal: a shell on a pseudo-terminal, those who watch it, and its end with all that it started."""

import asyncio
import logging
import os
import signal
import time
from typing import NamedTuple

from sandpod_runtime.activity import Activity
from sandpod_runtime.budget import Budget
from sandpod_runtime.errors import Fault
from sandpod_runtime.limits import Slots
from sandpod_runtime.process import tree
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.hub import Readers
from sandpod_runtime.process.spawn import Program, SpawnError
from sandpod_runtime.terminal import control
from sandpod_runtime.terminal.broadcast import Broadcast
from sandpod_runtime.terminal.pty import Pty, Size
from sandpod_runtime.terminal.viewer import Farewell, Viewer

MOST_VIEWERS = 16
NORMAL = 1000
# Dead, and the reaper has not come yet.
_REAPING_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Key(NamedTuple):
    """Terminals of sessions and those that were created by name do not share their ids."""

    id: str
    is_sessions: bool = False


class Terminal:
    def __init__(
        self,
        key: Key,
        *,
        program: Program,
        size: Size,
        commands: Commands,
        memory: Budget,
        activity: Activity,
        sockets: Slots,
    ) -> None:
        """Starts it. Raises Fault. `sockets` is what all terminals together may have."""
        self.key = key
        self.started_at = time.time()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._activity = activity
        self._all_sockets = sockets
        self._sockets = Slots("sockets on this terminal", MOST_VIEWERS)
        self._pty = _opened(size, readers=commands.readers)
        self._broadcast = Broadcast(memory=memory, on_room=self._pty.resume)
        try:
            self._leader = commands.start_on_terminal(program, terminal=self._pty.path, on_exit=self._exited)
        except SpawnError as error:
            self._pty.close()
            if error.too_large:
                raise Fault("VALIDATION_FAILED", str(error), context={"validationErrors": []}) from error
            raise Fault("PROCESS_ERROR", str(error), context={"processId": key.id}) from error
        except BaseException:
            self._pty.close()
            raise
        self._pty.started(self._output)
        logger.info("terminal started", extra={"terminal": key.id, "pid": self.pid})

    @property
    def pid(self) -> int:
        return self._leader.pid

    @property
    def shown_pid(self) -> int:
        return self._leader.shown_pid

    @property
    def size(self) -> Size:
        return self._pty.size

    @property
    def viewers(self) -> int:
        return len(self._broadcast)

    def resize(self, size: Size) -> None:
        if self._pty.is_open:
            self._pty.resize(size)

    async def write(self, data: bytes) -> None:
        """What somebody typed. Returns when there was room for it."""
        self._activity.touch()
        await self._pty.write(data)

    def attach(self) -> tuple[bytes, Viewer]:
        """What was written until now, and where all that follows arrives."""
        self._sockets.take()
        try:
            self._all_sockets.take()
        except Fault:
            self._sockets.give()
            raise
        return self._broadcast.attach()

    def detach(self, viewer: Viewer) -> None:
        self._sockets.give()
        self._all_sockets.give()
        self._broadcast.detach(viewer)

    def cut(self, farewell: Farewell) -> None:
        """Close everybody's socket."""
        self._broadcast.cut(farewell)

    def hang_up(self) -> None:
        """As if its window was closed. A shell passes that on to its jobs, and ends."""
        self._pty.close()

    async def destroy(self) -> None:
        """End all that was started here; `ended` is done afterwards."""
        self.hang_up()
        await tree.end(self._leader.members)
        await asyncio.wait({self.ended}, timeout=_REAPING_SECONDS)
        if not self.ended.done():
            self._exited(signal.SIGKILL)  # beyond our reach: for its viewers it is over

    def _output(self, data: bytes) -> None:
        self._activity.touch()
        self._broadcast.write(data)
        if not self._broadcast.is_wanted:
            self._pty.pause()

    def _exited(self, status: int) -> None:
        if self.ended.done():
            return
        self._pty.finish()
        code = os.waitstatus_to_exitcode(status)
        by = None if code >= 0 else _name(-code)
        message = control.ended(code if code >= 0 else 128 - code, signal=by)
        self._broadcast.end(Farewell(code=NORMAL, reason="the terminal has ended", message=message))
        self.ended.set_result(None)
        logger.info("terminal ended", extra={"terminal": self.key.id, "pid": self.pid, "exitCode": code})


def _opened(size: Size, *, readers: Readers) -> Pty:
    try:
        return Pty(size=size, readers=readers)
    except OSError as error:
        raise Fault(
            "PROCESS_ERROR",
            f"there is no pseudo-terminal to be had: {os.strerror(error.errno or 0)}",
            suggestion="terminals need /dev/ptmx and a devpts file system at /dev/pts",
        ) from error


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)  # a real-time signal
