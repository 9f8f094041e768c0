"""One session: a shell that lives from call to call, the calls that wait for it, and its end."""

import asyncio
import contextlib
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault
from sandpod_runtime.limits import Slots
from sandpod_runtime.process import tree
from sandpod_runtime.process.command import TIMED_OUT, Ending
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.pipe import OutputPipe, Sink, discard
from sandpod_runtime.process.spawn import Program
from sandpod_runtime.session import exports
from sandpod_runtime.session.channel import Channel
from sandpod_runtime.session.dialect import Dialect
from sandpod_runtime.session.snapshot import Snapshot

WAITING = 64
# What a session started gets this long to end itself. A call that timed out is not kept waiting much longer.
_GRACE = 1.0
_FAREWELL = 1.5
# How often a shell is looked at that should be running a command.
_LOOK = 1.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Report(NamedTuple):
    exit_code: int
    word: bytes
    refusal: bytes | None


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
        self._dialect = dialect
        self._environment = environment
        self._commands = commands
        self._on_over = on_over
        self._on_told = on_told
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        self._waiting = Slots(f"calls waiting for the session {session_id}", WAITING)
        self._directory = directory
        self._revision = environment.revision
        self._number = 0
        self._answer: asyncio.Future[Report] | None = None
        self._word: bytes | None = None
        self._exported = dict(environ)
        self._needs_repair = False
        self._was_read = False
        self._over: Fault | None = None
        self._ending: asyncio.Task[None] | None = None
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._channel = Channel(place, script=dialect.name, on_word=self._heard)
        try:
            self._leader = commands.start_on_terminal(
                Program(
                    path=shell[0],
                    arguments=[*shell[1:], dialect.name],
                    environ=dict(environ),
                    directory=os.fsdecode(self._channel.place),
                    script=self._channel.reader,
                ),
                terminal=os.devnull,
                on_exit=self._exited,
            )
        except BaseException:
            self._channel.close()
            raise
        finally:
            self._channel.forget_reader()
        self._channel.send(dialect.open(directory, previous=environ.get("OLDPWD")))

    @property
    def directory(self) -> str:
        """Where it is now, or was at its end."""
        if self._over is None:
            with contextlib.suppress(OSError):
                self._directory = os.readlink(f"/proc/{self._leader.pid}/cwd")  # noqa: PTH115 (bytes matter)
        return self._directory

    @property
    def exported(self) -> dict[str, str]:
        """What it exported after the last call."""
        if self._word is not None:
            self._exported, self._word = exports.exported(self._word), None
        return self._exported

    @property
    def is_busy(self) -> bool:
        return self._turn.locked()

    @property
    def waiting(self) -> int:
        return self._waiting.taken

    def on_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """`callback` is called once, when the session is deleted, dies or times out."""
        if self._over is not None:
            self._loop.call_soon(callback)
            return lambda: None
        key = object()
        self._callbacks[key] = callback
        return lambda: _drop(self._callbacks, key)

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
            if not _NAME.fullmatch(name):
                raise Fault(
                    "COMMAND_EXECUTION_ERROR",
                    f"env.{name}: in a session, names of variables are letters, digits and underscores",
                    context={"command": command},
                    operation="command.execute",
                )

        def lines(number: int) -> bytes:
            place = self._channel.place
            evaluation = self._dialect.evaluate(command, variables=variables, place=place)
            report = self._dialect.report(number, place=place)
            if not cwd:
                return evaluation + report
            status, rest = report.split(b"\n", 1)
            target = cwd if cwd.startswith("/") else f"./{cwd}"
            return b"".join(
                (
                    self._dialect.enter(target, then=evaluation, number=number, place=place),
                    status,
                    b"\n",
                    self._dialect.leave(self._logical_directory(), previous=self.exported.get("OLDPWD")),
                    rest,
                )
            )

        begun = time.monotonic()
        sinks = Sinks(stdout, stderr)
        report = await self._in_turn(
            partial(self._perform, lines, command=command, sinks=sinks, timeout=timeout or self.timeout),
            on_leave=sinks.detach,
        )
        return Ending(exit_code=report.exit_code, timed_out=False, seconds=time.monotonic() - begun)

    async def snapshot(self) -> Snapshot:
        raise NotImplementedError

    def delete(self) -> None:
        """End it now. What runs in it is told so."""
        self._finish(
            Fault("SESSION_DESTROYED", f"the session {self.id} was deleted", context={"sessionId": self.id})
        )

    async def _in_turn(self, work: Callable[[], Awaitable[T]], *, on_leave: Callable[[], None]) -> T:
        with self._waiting.one():
            await self._turn.acquire()
        if over := self._over:
            self._turn.release()
            self._on_told(self)
            raise over
        task = asyncio.ensure_future(work())
        task.add_done_callback(self._turn_over)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            on_leave()
            raise
        except Fault as fault:
            if fault.code == "SESSION_TERMINATED":
                self._on_told(self)
            raise

    def _turn_over(self, task: "asyncio.Future[T]") -> None:
        self._turn.release()
        if not task.cancelled():
            # Nobody may be left to look at it.
            task.exception()

    async def _perform(
        self, lines: Callable[[int], bytes], *, command: str, sinks: "Sinks", timeout: float | None
    ) -> Report:
        self._number += 1
        answer = self._answer = self._loop.create_future()
        drained = self._loop.create_future()
        descriptors = self._channel.outputs()
        pipes: list[OutputPipe] = []

        def settle() -> None:
            if len(pipes) == len(descriptors) and all(pipe.ended for pipe in pipes) and not drained.done():
                drained.set_result(None)

        for descriptor, sink in zip(descriptors, (sinks.write_stdout, sinks.write_stderr), strict=True):
            pipes.append(OutputPipe(descriptor, readers=self._commands.readers, sink=sink, on_end=settle))
        timer = None if timeout is None else self._loop.call_later(timeout, self._time_out, timeout, command)
        self._was_read = False
        look = self._loop.call_later(_LOOK, self._look)
        repaired = self._needs_repair
        self._channel.send(self._news() + lines(self._number))
        try:
            report = await answer
            self._take_word(report.word, repaired=repaired)
            for pipe in pipes:
                pipe.finish()
            await drained
            if report.refusal is not None:
                sinks.write_stderr(report.refusal)
                return report._replace(exit_code=1)
            return report
        except Fault as fault:
            if self._ending is not None and fault.code == "COMMAND_EXECUTION_ERROR":
                # Then the caller can rely on it that nothing goes on, if that is possible at all.
                await asyncio.wait([self._ending], timeout=_FAREWELL)
            raise
        finally:
            self._answer = None
            look.cancel()
            if timer is not None:
                timer.cancel()
            for pipe in pipes:
                self._let_go(pipe, descriptors[pipes.index(pipe)])

    def _let_go(self, pipe: OutputPipe, descriptor: int) -> None:
        """A command in the background may go on writing, to nowhere; it must not die of a closed pipe."""
        if not pipe.is_open:
            return
        pipe.finish()
        try:
            is_held = os.read(descriptor, 1) != b""
        except BlockingIOError:
            is_held = True
        if is_held:
            self._commands.adopt(pipe)
        else:
            pipe.close()

    def _news(self) -> bytes:
        """What the shell has to hear before its next command."""
        lines = self._dialect.repair if self._needs_repair else b""
        if self._revision != self._environment.revision:
            changes = self._environment.changes_since(self._revision)
            self._revision = self._environment.revision
            lines += self._dialect.change(
                {name: value for name, value in changes.items() if _NAME.fullmatch(name)}
            )
        return lines

    def _heard(self, word: bytes) -> None:
        if self._answer is None or self._answer.done():
            return
        exit_code = self._channel.status(self._number)
        if exit_code is not None:
            refusal = self._channel.refusal(self._number)
            self._answer.set_result(Report(exit_code=exit_code, word=word, refusal=refusal))

    def _take_word(self, word: bytes, *, repaired: bool) -> None:
        if self._dialect.proves and b"\n%d\n" % self._number not in word:
            if repaired:
                fault = self._terminated("its shell does not obey any more", exit_code=None)
                self._finish(fault)
                raise fault
            self._needs_repair = True
            return
        self._needs_repair = False
        self._word = word

    def _look(self) -> None:
        """Every line is read, and there is no answer: a command has broken its shell (`set -n`, `ulimit`)."""
        if self._answer is None or self._answer.done():
            return
        is_read = not self._dialect.reads_ahead and self._channel.is_read
        if is_read and self._was_read:
            self._finish(self._terminated("its shell does not answer any more", exit_code=None))
            return
        self._was_read = is_read
        self._loop.call_later(_LOOK, self._look)

    def _time_out(self, seconds: float, command: str) -> None:
        told = Fault(
            "COMMAND_EXECUTION_ERROR",
            f"timeout: the command was ended after {round(seconds * 1000)}ms, and its session with it",
            context={"command": command, "exitCode": TIMED_OUT},
            operation="command.execute",
            suggestion="the next call says once that the session has ended; then it begins anew",
        )
        self._finish(self._terminated("a command in it took too long", exit_code=None), told=told)

    def _exited(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        code = code if code >= 0 else 128 - code
        self._finish(self._terminated(f"its shell has exited with {code}", exit_code=code))

    def _terminated(self, reason: str, *, exit_code: int | None) -> Fault:
        return Fault(
            "SESSION_TERMINATED",
            f"the session {self.id} has ended: {reason}",
            context={"sessionId": self.id, "exitCode": exit_code},
            suggestion="the next call with this id begins with a fresh shell",
        )

    def _finish(self, fault: Fault, *, told: Fault | None = None) -> None:
        """`told` is what the running call gets, if that is something else."""
        if self._over is not None:
            return
        _ = self.directory  # for the last time
        self._over = fault
        logger.info("session ended", extra={"session": self.id, "reason": fault.message})
        self._on_over(self, fault)
        self._ending = self._loop.create_task(self._end_tree())
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(told or fault)
        for callback in [*self._callbacks.values()]:
            callback()
        self._callbacks.clear()

    async def _end_tree(self) -> None:
        try:
            if not await tree.end(self._leader.members, grace=_GRACE):
                logger.warning("processes of a session outlived SIGKILL", extra={"session": self.id})
        finally:
            self._channel.close()

    def _logical_directory(self) -> str:
        """With the links by which it was reached."""
        told = self.exported.get("PWD", "")
        return told if told.startswith("/") else self.directory


class Sinks:
    """Where the output of a call goes, until its caller leaves."""

    def __init__(self, stdout: Sink, stderr: Sink) -> None:
        self._stdout = stdout
        self._stderr = stderr

    def write_stdout(self, data: bytes) -> bool:
        return self._stdout(data)

    def write_stderr(self, data: bytes) -> bool:
        return self._stderr(data)

    def detach(self) -> None:
        self._stdout = self._stderr = discard


def _drop(callbacks: dict[object, Callable[[], None]], key: object) -> None:
    callbacks.pop(key, None)
