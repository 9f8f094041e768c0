"""The commands that make a workspace ready: run one after the other, once for each workspace.

What succeeded is remembered beside the sessions, by the hash of the list; what failed or was cut off is run
again at the next start.
"""

import asyncio
import contextlib
import errno
import hashlib
import logging
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import UNSET

from sandpod_runtime.activity import Activity
from sandpod_runtime.budget import Budget
from sandpod_runtime.clock import timestamp
from sandpod_runtime.disk import Disk
from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.lifecycle.setup_log import LARGEST_FILE, SetupLog
from sandpod_runtime.models.lifecycle import SetupShown, SetupState
from sandpod_runtime.process import shell
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import Program, SpawnError
from sandpod_runtime.state import StateDirectory, read_whole, write_whole

_FOLDER = "setup"
_LARGEST_RECORD = 4096
_SHOWN_CHARACTERS = 2000
# The shell's code for a program that could not be run.
_CANNOT_RUN = 126

logger = logging.getLogger(__name__)


class Done(msgspec.Struct, rename="camel", kw_only=True):
    """What is remembered of a setup that has succeeded."""

    sha256: str
    started_at: str
    finished_at: str


_decoder = msgspec.json.Decoder(Done)


class Setup:
    def __init__(
        self,
        *,
        commands: Commands,
        environment: Environment,
        state: StateDirectory,
        disk: Disk,
        memory: Budget,
        activity: Activity,
        life: Life,
    ) -> None:
        self._commands = commands
        self._environment = environment
        self._directory = state
        self._disk = disk
        self._memory = memory
        self._activity = activity
        self._life = life
        self._log = SetupLog(memory=memory)
        self._log.close()
        self._steps: list[str] = []
        self._step = 0
        self._exit_code: int | None = None
        self._times = ("", "")
        self._running: asyncio.Task[None] | None = None
        self.state: SetupState = "none"

    async def is_due(self, steps: list[str]) -> bool:
        """Whether this list has not yet succeeded in this workspace."""
        self._steps = steps
        if not steps:
            return False
        if self._directory.persistent:
            try:
                done = _decoder.decode(await self._disk.run(self._read, "done.json", _LARGEST_RECORD))
            except FileNotFoundError:
                return True
            except (OSError, msgspec.DecodeError, UnicodeError) as error:
                logger.warning("it is not known how the setup went", extra={"reason": str(error)})
                return True
            if done.sha256 == _hash(steps):
                self.state = "skipped"
                self._step = len(steps)
                self._times = (done.started_at, done.finished_at)
                return False
        return True

    def begin(self, then: Callable[[], Awaitable[object]]) -> None:
        """`then` is done after the last step, and also after one that failed."""
        self.state = "running"
        self._log = SetupLog(memory=self._memory)
        self._times = (timestamp(), "")
        self._running = asyncio.get_running_loop().create_task(self._run(then))

    async def stop(self) -> None:
        """No further step, and nothing after it. What runs is killed by whoever ends all commands."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    def shown(self) -> SetupShown:
        about = SetupShown(state=self.state, step=self._step, steps=len(self._steps))
        if self.state in ("running", "failed") and self._step:
            about.command = self._steps[self._step - 1]
        if self.state in ("running", "failed", "succeeded"):
            about.output = self._log.end(_SHOWN_CHARACTERS)
        if self._exit_code is not None:
            about.exit_code = self._exit_code
        started, finished = self._times
        about.started_at = started or UNSET
        about.finished_at = finished or UNSET
        return about

    async def log(self) -> SetupLog:
        """Of the setup that runs or ran, also when that was in a former life."""
        if self.state == "skipped" and not self._log.read(0, most=1)[0]:
            log = SetupLog(memory=self._memory, limit=2 * LARGEST_FILE)
            try:
                log.write(await self._disk.run(self._read, "log", LARGEST_FILE))
            except OSError as error:
                log.note(f"What the setup has written is lost: {error.strerror}.")
            log.close()
            self._log = log
        return self._log

    async def _run(self, then: Callable[[], Awaitable[object]]) -> None:
        with self._activity.setup():
            try:
                code = await self._all_steps()
            finally:
                self._log.close()
            if code is None:
                return
            self._times = (self._times[0], timestamp())
            # Before anybody is told how it went: a sleep right after that must not run it again.
            await self._disk.run(self._keep, succeeded=code == 0)
            self.state, self._exit_code = "failed" if code else "succeeded", code
        logger.info("the setup has ended", extra={"state": self.state, "step": self._step})
        await then()

    async def _all_steps(self) -> int | None:
        """The exit code of the last one; None when the end of the runtime has cut it off."""
        for number, command in enumerate(self._steps, start=1):
            if self._life.draining:
                return None
            self._step = number
            self._log.note(f"$ {command}")
            code = await self._exit_code_of(command)
            if code and self._life.draining:
                return None  # it has not failed, it was killed
            if code:
                self._log.note(f"Step {number} of {len(self._steps)} ended with exit code {code}.")
                return code
        return 0

    async def _exit_code_of(self, command: str) -> int:
        environ = self._environment.variables
        try:
            with shell.prepared(command, search=environ.get("PATH", "")) as line:
                program = Program(
                    path=line.path,
                    arguments=line.arguments,
                    environ=environ,
                    directory=self._environment.directory(),
                    script=line.script,
                )
                running = self._commands.start(
                    program,
                    stdin=None,
                    stdin_done=lambda: None,
                    stdout=self._log.write,
                    stderr=self._log.write,
                    timeout=None,
                )
        except (Fault, SpawnError, shell.NoShellError) as error:
            self._log.note(str(error))
            return _CANNOT_RUN
        return (await running.ending()).exit_code

    def _keep(self, *, succeeded: bool) -> None:
        """On a disk that has no room for it the setup is run again, which is better than not at all."""
        if not self._directory.persistent:
            return
        started, finished = self._times
        try:
            place = self._directory.path(_FOLDER)
            write_whole(f"{place}/log", self._log.whole())
            if succeeded:
                done = Done(sha256=_hash(self._steps), started_at=started, finished_at=finished)
                write_whole(f"{place}/done.json", msgspec.json.encode(done))
        except OSError as error:
            logger.warning("the setup will be run again", extra={"reason": str(error)})

    def _read(self, name: str, largest: int) -> bytes:
        folder = self._directory.existing(_FOLDER)
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, "not found", name)
        return read_whole(f"{folder}/{name}", largest=largest)


def _hash(steps: list[str]) -> str:
    return hashlib.sha256(msgspec.json.encode(steps)).hexdigest()
