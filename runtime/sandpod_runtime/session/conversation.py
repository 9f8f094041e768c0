"""One exchange after another with a session's shell: lines go in, output and an exit code come back."""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from sandpod_runtime.errors import Fault
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.pipe import OutputPipe, Sink, discard
from sandpod_runtime.session import exports
from sandpod_runtime.session.channel import Channel
from sandpod_runtime.session.dialect import Call, Dialect, Where

# How often a shell is looked at that should be running a command.
_LOOK = 1.0


class Report(NamedTuple):
    exit_code: int
    word: bytes
    refusal: bytes | None


class Lines(Protocol):
    def __call__(self, *, number: int, place: bytes) -> bytes: ...


class Sinks:
    """Where the output of a call goes, until its caller leaves."""

    def __init__(self, stdout: Sink = discard, stderr: Sink = discard) -> None:
        self._stdout = stdout
        self._stderr = stderr

    def write_stdout(self, data: bytes) -> bool:
        return self._stdout(data)

    def write_stderr(self, data: bytes) -> bool:
        return self._stderr(data)

    def detach(self) -> None:
        self._stdout = self._stderr = discard


class Conversation:
    def __init__(
        self, place: str, *, dialect: Dialect, commands: Commands, on_broken: Callable[[str], Fault]
    ) -> None:
        """`on_broken` is told why the shell is of no more use, and says what its caller gets. Raises
        OSError.
        """
        self.channel = Channel(place, script=dialect.name, on_word=self._heard)
        self._dialect = dialect
        self._commands = commands
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._answer: asyncio.Future[Report] | None = None
        self._needs_repair = False
        self._was_read = False
        self._word = b""
        self._exported: dict[str, str] | None = {}

    @property
    def exported(self) -> dict[str, str]:
        """What the shell exported after the last exchange."""
        if self._exported is None:
            self._exported, self._word = exports.exported(self._word), b""
        return self._exported

    def fail(self, fault: Fault) -> None:
        """The shell has ended, or will."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(fault)

    async def evaluate(
        self,
        command: bytes,
        *,
        news: bytes,
        variables: Mapping[str, str],
        directory: str | None,
        home: Where,
        sinks: Sinks,
    ) -> Report:
        """`news` are lines to read before. Raises what `fail` is given."""
        is_left = len(command) > self._dialect.longest and self.channel.leave(command)

        def lines(*, number: int, place: bytes) -> bytes:
            call = Call(
                number=number,
                place=place,
                command=None if is_left else command,
                variables=variables,
                directory=directory,
                home=home,
            )
            return news + self._dialect.call(call)

        return await self._exchange(lines, sinks=sinks)

    async def describe(self, *, news: bytes, sinks: Sinks) -> Report:
        """What the shell tells of its state goes to the sink for stdout. Raises what `fail` is given."""

        def lines(*, number: int, place: bytes) -> bytes:
            return news + self._dialect.describe(number=number, place=place)

        return await self._exchange(lines, sinks=sinks)

    async def _exchange(self, lines: Lines, *, sinks: Sinks) -> Report:
        self._number += 1
        try:
            descriptors = self.channel.outputs()
        except OSError as error:
            reason = f"no pipes could be made for the command: {os.strerror(error.errno or 0)}"
            raise Fault("COMMAND_EXECUTION_ERROR", reason) from error
        answer = self._answer = self._loop.create_future()
        drained = self._loop.create_future()
        pipes: list[OutputPipe] = []

        def settle() -> None:
            if len(pipes) == len(descriptors) and all(pipe.ended for pipe in pipes) and not drained.done():
                drained.set_result(None)

        for descriptor, sink in zip(descriptors, (sinks.write_stdout, sinks.write_stderr), strict=True):
            pipes.append(OutputPipe(descriptor, readers=self._commands.readers, sink=sink, on_end=settle))
        self._was_read = False
        look = self._loop.call_later(_LOOK, self._look, answer)
        repair = self._dialect.repair if self._needs_repair else b""
        self.channel.send(repair + lines(number=self._number, place=self.channel.place))
        try:
            report = await answer
            self._take(report.word)
            for pipe in pipes:
                pipe.finish()
            await drained
        finally:
            self._answer = None
            look.cancel()
            for pipe, descriptor in zip(pipes, descriptors, strict=True):
                self._let_go(pipe, descriptor)
        if report.refusal is not None:
            sinks.write_stderr(report.refusal)
            return report._replace(exit_code=1)
        return report

    def _heard(self, word: bytes) -> None:
        if self._answer is None or self._answer.done():
            return
        exit_code = self.channel.status(self._number)
        if exit_code is not None:
            refusal = self.channel.refusal(self._number)
            self._answer.set_result(Report(exit_code=exit_code, word=word, refusal=refusal))

    def _take(self, word: bytes) -> None:
        if not self._dialect.proves or b"\n%d\n" % self._number in word:
            self._needs_repair = False
            self._word, self._exported = word, None
        elif not self._needs_repair:
            # From now on, but this command has run: its words meant what they should when it began.
            self._needs_repair = True
        else:
            raise self._on_broken("its shell does not obey any more")

    def _look(self, answer: "asyncio.Future[Report]") -> None:
        """Every line is read, and there is no answer: a command has broken its shell (`set -n`, `ulimit`)."""
        if answer.done():
            return
        is_read = not self._dialect.reads_ahead and self.channel.is_read
        if is_read and self._was_read:
            self._on_broken("its shell does not answer any more")
            return
        self._was_read = is_read
        self._loop.call_later(_LOOK, self._look, answer)

    def _let_go(self, pipe: OutputPipe, descriptor: int) -> None:
        """What runs in the background may go on writing, to nowhere; it must not die of a closed pipe."""
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
