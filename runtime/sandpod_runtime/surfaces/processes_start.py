"""From a call to its running command, or its process record, or the error that says why there is none."""

import contextlib
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from aiohttp.web_response import Response

from sandpod_runtime.budget import Budget
from sandpod_runtime.environment import Environment, merged
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.processes import StartProcessReply
from sandpod_runtime.paths import resolved
from sandpod_runtime.process import plain, shell
from sandpod_runtime.process.command import Command
from sandpod_runtime.process.commands import Commands, TooManyCommandsError
from sandpod_runtime.process.pipe import Sink
from sandpod_runtime.process.records import Processes, Record
from sandpod_runtime.process.spawn import Program, SpawnError
from sandpod_runtime.session.sessions import Session, Sessions
from sandpod_runtime.session.snapshot import Snapshot
from sandpod_runtime.surfaces.call import Call
from sandpod_runtime.wire import Request, reply


class Failure(NamedTuple):
    """How the protocol calls a command that could not be started."""

    code: str
    operation: str


class Starter:
    def __init__(
        self,
        *,
        commands: Commands,
        environment: Environment,
        memory: Budget,
        processes: Processes,
        sessions: Sessions,
    ) -> None:
        self._commands = commands
        self._environment = environment
        self._memory = memory
        self._processes = processes
        self._sessions = sessions

    def command(
        self, call: Call, *, request: Request, stdout: Sink, stderr: Sink, failure: Failure
    ) -> Command:
        """A stateless one, without a record."""
        with _explained(call, failure):
            return self._stateless(call, request=request, stdout=stdout, stderr=stderr)

    async def process(
        self,
        call: Call,
        *,
        request: Request,
        failure: Failure,
        process_id: str | None = None,
        feed: tuple[Sink, Sink] | None = None,
    ) -> Record:
        """With a session, the process begins in the state that the session has when its turn comes."""
        session: Session | None = None
        snapshot: Snapshot | None = None
        if call.session_id is not None:
            _refuse_names(call, failure)
            session = await self._sessions.use(call.session_id)
            snapshot = await session.snapshot()

        def launch(*, stdout: Sink, stderr: Sink) -> Command:
            with _explained(call, failure):
                if snapshot is None:
                    return self._stateless(call, request=request, stdout=stdout, stderr=stderr)
                return self._forked(call, snapshot, request=request, stdout=stdout, stderr=stderr)

        record = self._processes.start(
            process_id=process_id,
            command=call.command,
            session_id=call.session_id,
            launch=launch,
            timeout_note=call.timeout_note,
            feed=feed,
        )
        if session is not None:
            record.on_exit(session.on_end(record.kill))
        return record

    def _stateless(self, call: Call, *, request: Request, stdout: Sink, stderr: Sink) -> Command:
        environ = merged(self._environment.variables, call.env)
        directory = self._directory(call)
        run = partial(self._run, call=call, request=request, stdout=stdout, stderr=stderr)
        found = shell.find(search=environ.get("PATH", ""))
        if shell.is_bash(found) and (
            program := plain.program(call.command, environ=environ, directory=directory)
        ):
            # What the kernel cannot start, such as a script without a first line, bash may.
            with contextlib.suppress(SpawnError):
                return run(program)
        with shell.prepared(call.command, search=environ.get("PATH", "")) as line:
            return run(
                Program(
                    path=line.path,
                    arguments=line.arguments,
                    environ=environ,
                    directory=directory,
                    script=line.script,
                )
            )

    def _forked(
        self, call: Call, snapshot: Snapshot, *, request: Request, stdout: Sink, stderr: Sink
    ) -> Command:
        environ = merged(snapshot.environ, call.env)
        prelude = _prelude(call, snapshot)
        with shell.prepared(call.command, search=environ.get("PATH", ""), prelude=prelude) as line:
            program = Program(
                path=line.path,
                arguments=line.arguments,
                environ=environ,
                directory="/",  # the prelude goes where the session is, and says so when it cannot
                script=line.script,
            )
            return self._run(program, call=call, request=request, stdout=stdout, stderr=stderr)

    def _directory(self, call: Call) -> str:
        if call.cwd is None:
            return self._environment.directory()
        base = "" if call.cwd.startswith("/") else self._environment.directory()
        return resolved(call.cwd, base=base)

    def _run(self, program: Program, *, call: Call, request: Request, stdout: Sink, stderr: Sink) -> Command:
        # The input outlives a request whose client leaves: its part of the body's charge goes over to it.
        charge = min(request.charged, len(call.stdin or b""))
        command = self._commands.start(
            program,
            stdin=call.stdin,
            stdin_done=partial(self._memory.give, charge),
            stdout=stdout,
            stderr=stderr,
            timeout=call.timeout,
            stdin_open=call.stdin_open,
        )
        request.charged -= charge
        return command


def started_reply(record: Record, call: Call) -> Response:
    assert record.pid is not None
    answer = StartProcessReply(process_id=record.id, pid=record.pid, command=call.command)
    if call.session_id is not None:
        answer.session_id = call.session_id
    return reply(answer)


def _prelude(call: Call, snapshot: Snapshot) -> bytes:
    """What a shell reads so that it is like the session's, and then as the call wants it."""
    directory = resolved(call.cwd, base=snapshot.directory) if call.cwd else snapshot.directory
    lines = [b"cd -- %b || exit 1\n" % _quoted(directory), snapshot.script, b"\n"]
    for name, value in (call.env or {}).items():
        if value is not None:
            lines.append(b"export %b=%b\n" % (name.encode(), _quoted(value)))
    return b"".join(lines)


def _quoted(text: str) -> bytes:
    return shlex.quote(text).encode(errors="surrogateescape")


def _refuse_names(call: Call, failure: Failure) -> None:
    for name in call.env or {}:
        if not (name.isidentifier() and name.isascii()):
            raise Fault(
                failure.code,
                f"env.{name}: in a session, names of variables are letters, digits and underscores",
                context={"command": call.command},
                operation=failure.operation,
            )


@contextmanager
def _explained(call: Call, failure: Failure) -> Generator[None]:
    context: dict[str, object] = {"command": call.command}
    try:
        yield
    except TooManyCommandsError as error:
        error.context = context
        raise
    except shell.NoShellError as error:
        raise Fault(failure.code, str(error), context=context, operation=failure.operation) from error
    except SpawnError as error:
        if error.too_large:
            raise invalid("env", str(error)) from error
        raise Fault(failure.code, str(error), context=context, operation=failure.operation) from error
