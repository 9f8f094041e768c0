"""One session: a shell that lives from call to call, the calls that wait for it, and its end."""

import asyncio
import contextlib
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault
from sandpod_runtime.process import tree
from sandpod_runtime.process.command import Ending
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.pipe import Sink
from sandpod_runtime.process.spawn import Program
from sandpod_runtime.session import dump, ends
from sandpod_runtime.session.conversation import Conversation, Report, Sinks
from sandpod_runtime.session.dialect import Dialect, Where
from sandpod_runtime.session.snapshot import Snapshot
from sandpod_runtime.session.turns import Turns

LARGEST_STATE = 8 << 20
# What a session started gets this long to end itself. A call that timed out is not kept waiting much longer.
_GRACE = 1.0
_FAREWELL = 1.5
# How much of a state's complaints is of interest when it is restored.
_COMPLAINTS = 16_384
_UNASKED = "all but the directory and the exported variables: a command was running"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

logger = logging.getLogger(__name__)


class Session:
    def __init__(
        self,
        *,
        session_id: str,
        shell: list[str],
        dialect: Dialect,
        environ: Mapping[str, str],
        directory: str,
        timeout: float | None,
        place: str,
        environment: Environment,
        commands: Commands,
        on_over: Callable[["Session", Fault], None],
        on_told: Callable[["Session"], None],
    ) -> None:
        """Starts the shell. `on_told` says that a caller knows of the end. Raises OSError, SpawnError or
        Fault.
        """
        self.id = session_id
        self.shell = dialect.name
        self.timeout = timeout
        # What could not be restored of an earlier life.
        self.missing: list[str] = []
        self._dialect = dialect
        self._environment = environment
        self._on_over = on_over
        self._on_told = on_told
        self._loop = asyncio.get_running_loop()
        self._turns = Turns(session_id)
        self._directory = directory
        self._revision = environment.revision
        self._started_with = dict(environ)
        self._over: Fault | None = None
        self._ending: asyncio.Task[None] | None = None
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._conversation = Conversation(
            place, dialect=dialect, commands=commands, on_broken=self._break_off
        )
        channel = self._conversation.channel
        try:
            self._leader = commands.start_on_terminal(
                Program(
                    path=shell[0],
                    arguments=[*shell[1:], dialect.name],
                    environ=self._started_with,
                    directory=os.fsdecode(channel.place),
                    script=channel.reader,
                ),
                terminal=os.devnull,
                on_exit=self._exited,
            )
        except BaseException:
            channel.close()
            raise
        finally:
            channel.forget_reader()
        self._limits = dump.limits(self._leader.pid)
        channel.send(dialect.open(Where(directory=directory, previous=environ.get("OLDPWD"))))

    @property
    def directory(self) -> str:
        """Where it is now, or was at its end."""
        if self._over is None:
            with contextlib.suppress(OSError):
                found = os.readlink(f"/proc/{self._leader.pid}/cwd")  # noqa: PTH115 (bytes matter)
                # Until it has read its first lines, it is where they lie.
                if found != os.fsdecode(self._conversation.channel.place):
                    self._directory = found
        return self._directory

    @property
    def exported(self) -> dict[str, str]:
        """What it exported after the last call."""
        return self._conversation.exported or self._started_with

    @property
    def is_busy(self) -> bool:
        return self._turns.is_taken

    @property
    def waiting(self) -> int:
        return self._turns.waiting

    def on_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """`callback` is called once, when the session is deleted, dies or times out."""
        key = object()
        if self._over is not None:
            self._loop.call_soon(callback)
        else:
            self._callbacks[key] = callback

        def leave() -> None:
            self._callbacks.pop(key, None)

        return leave

    async def run(
        self,
        *,
        command: str,
        env: Mapping[str, str | None] | None,
        cwd: str | None,
        timeout: float | None,
        stdout: Sink,
        stderr: Sink,
    ) -> Ending:
        """Raises Fault: the session's end, or too many calls. When the caller leaves, the command runs on."""
        variables = {name: value for name, value in (env or {}).items() if value is not None}
        for name in variables:
            if not NAME.fullmatch(name):
                raise ends.refused(name, command)
        sinks = Sinks(stdout, stderr)
        seconds = timeout or self.timeout

        async def work() -> Report:
            timer = None
            if seconds is not None:
                timer = self._loop.call_later(seconds, self._time_out, seconds, command)
            try:
                return await self._evaluate(
                    os.fsencode(command), sinks=sinks, variables=variables, cwd=cwd or None
                )
            except Fault as fault:
                if fault.code == "COMMAND_EXECUTION_ERROR":
                    # The caller can rely on it that nothing goes on.
                    await self.gone()
                raise
            finally:
                if timer is not None:
                    timer.cancel()

        begun = time.monotonic()
        report = await self._in_turn(work, on_leave=sinks.detach)
        return Ending(exit_code=report.exit_code, timed_out=False, seconds=time.monotonic() - begun)

    async def snapshot(self) -> Snapshot:
        output = bytearray()
        sinks = Sinks(stdout=lambda data: len(output) > LARGEST_STATE or not output.extend(data))

        async def work() -> Report:
            return await self._conversation.describe(news=self._news(), sinks=sinks)

        await self._in_turn(work, on_leave=sinks.detach)
        if len(output) > LARGEST_STATE:
            reason = f"the state of the session {self.id} is larger than {LARGEST_STATE} bytes"
            raise Fault("RESOURCE_BUSY", reason, suggestion="unset large variables")
        try:
            script, lost = self._dialect.state(bytes(output))
        except dump.NoStateError as error:
            reason = f"the shell of the session {self.id} does not tell its state"
            raise Fault("COMMAND_EXECUTION_ERROR", reason) from error
        return Snapshot(
            directory=self._logical_directory(),
            environ=dict(self.exported),
            script=script,
            lost=lost,
        )

    async def state(self, *, patience: float) -> Snapshot:
        """The same, or as much of it as is known without the shell, when that does not come to it in time."""
        try:
            async with asyncio.timeout(patience):
                found = await self.snapshot()
        except TimeoutError:
            environ = dict(self.exported)
            return Snapshot(directory=self.directory, environ=environ, script=b"", lost=[_UNASKED])
        found.lost.extend(dump.left_behind(self._leader, began_with=self._limits))
        return found

    async def restore(self, script: bytes) -> None:
        """Take over an earlier life's state, before all else. Raises Fault when that ends the session."""
        complaints = bytearray()
        sinks = Sinks(stderr=lambda data: len(complaints) > _COMPLAINTS or not complaints.extend(data))
        work = partial(self._evaluate, script, sinks=sinks, variables={}, cwd=None)
        try:
            await self._in_turn(work)
        finally:
            text = complaints.decode("utf-8", "replace")
            self.missing += [line.removeprefix(f"{self.shell}: ") for line in text.splitlines()]

    async def gone(self) -> None:
        """After its end: what it had started is gone too, or cannot be killed."""
        if self._ending is not None:
            await asyncio.wait([self._ending], timeout=_FAREWELL)

    def end(self, fault: Fault) -> None:
        """Now. What runs in it is told so."""
        self._finish(fault)

    async def _in_turn(
        self, work: Callable[[], Awaitable[Report]], *, on_leave: Callable[[], None] = lambda: None
    ) -> Report:
        try:
            return await self._turns.take(work, check=self._check, on_leave=on_leave)
        except Fault as fault:
            if fault.code == "SESSION_TERMINATED":
                self._on_told(self)
            raise

    def _check(self) -> None:
        if self._over is not None:
            raise self._over

    async def _evaluate(
        self, command: bytes, *, sinks: Sinks, variables: Mapping[str, str], cwd: str | None
    ) -> Report:
        return await self._conversation.evaluate(
            command,
            news=self._news(),
            variables=variables,
            # A name that begins with "-" or stands in CDPATH means no more than it says.
            directory=cwd if cwd is None or cwd.startswith("/") else f"./{cwd}",
            home=Where(directory=self._logical_directory(), previous=self.exported.get("OLDPWD")),
            sinks=sinks,
        )

    def _news(self) -> bytes:
        """What has changed for all surfaces since the shell was last told."""
        if self._revision == self._environment.revision:
            return b""
        changes = self._environment.changes_since(self._revision)
        self._revision = self._environment.revision
        return self._dialect.change({name: value for name, value in changes.items() if NAME.fullmatch(name)})

    def _time_out(self, seconds: float, command: str) -> None:
        self._finish(
            ends.terminated(self.id, "a command in it took too long"), told=ends.timed_out(command, seconds)
        )

    def _exited(self, status: int) -> None:
        self._finish(ends.exited(self.id, status))

    def _break_off(self, reason: str) -> Fault:
        fault = ends.terminated(self.id, reason)
        self._finish(fault)
        return fault

    def _finish(self, fault: Fault, *, told: Fault | None = None) -> None:
        """`told` is what the running call gets, if that is something else."""
        if self._over is not None:
            return
        _ = self.directory  # for the last time
        self._over = fault
        logger.info("session ended", extra={"session": self.id, "reason": fault.message})
        self._on_over(self, fault)
        self._ending = self._loop.create_task(self._end_tree())
        self._conversation.fail(told or fault)
        for callback in [*self._callbacks.values()]:
            callback()
        self._callbacks.clear()

    async def _end_tree(self) -> None:
        try:
            if not await tree.end(self._leader.members, grace=_GRACE):
                logger.warning("processes of a session outlived SIGKILL", extra={"session": self.id})
        finally:
            self._conversation.channel.close()

    def _logical_directory(self) -> str:
        """With the links by which it was reached."""
        told = self.exported.get("PWD", "")
        return told if told.startswith("/") else self.directory
