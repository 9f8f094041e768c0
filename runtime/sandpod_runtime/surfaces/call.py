"""From the body of an execute request to what will be done, or to the error that says what is wrong with
it.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64
from dataclasses import dataclass

from sandpod_runtime.environment import Environ, Environment, merged, name_problem
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.exec import ExecuteRequest
from sandpod_runtime.paths import checked, resolved
from sandpod_runtime.session.ids import named_or_hinted
from sandpod_runtime.wire import Request

DEFAULT_OUTPUT = 64 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    command: str
    environ: Environ
    directory: str
    stdin: bytes | None
    timeout_ms: float | None
    base64: bool
    output_limit: int
    kill_on_disconnect: bool

    @property
    def timeout(self) -> float | None:
        return self.timeout_ms / 1000 if self.timeout_ms else None

    @property
    def timeout_note(self) -> str:
        number = self.timeout_ms or 0
        return f"Command timed out after {int(number) if number == int(number) else number}ms"


def understood(body: ExecuteRequest, *, request: Request, environment: Environment, streamed: bool) -> Call:
    _refuse_sessions(body, request)
    if body.background:
        raise invalid(
            "background", "processes are not there yet; a command that ends with & runs on by itself"
        )
    if streamed and body.max_output_bytes is not None:
        raise invalid("maxOutputBytes", "a stream is never cut; this belongs to /api/execute")
    return Call(
        command=_command(body.command),
        environ=_environ(body, environment),
        directory=_directory(body.cwd, environment),
        stdin=_stdin(body),
        timeout_ms=body.timeout_ms,
        base64=body.output_encoding == "base64",
        output_limit=DEFAULT_OUTPUT if body.max_output_bytes is None else body.max_output_bytes,
        kill_on_disconnect=(body.on_disconnect or ("detach" if streamed else "kill")) == "kill",
    )


def _refuse_sessions(body: ExecuteRequest, request: Request) -> None:
    if named_or_hinted(body.session_id, request):
        raise invalid("sessionId", "sessions are not there yet; leave it out for a stateless command")


def _command(command: str | None) -> str:
    if command is None or not command.strip():
        raise Fault("INVALID_COMMAND", "command: give a command line", context={"command": command or ""})
    if "\0" in command:
        raise Fault("INVALID_COMMAND", "command: it cannot hold NUL", context={"command": command})
    return command


def _environ(body: ExecuteRequest, environment: Environment) -> Environ:
    for name, value in (body.env or {}).items():
        if problem := name_problem(name):
            raise invalid(f"env.{name}", problem)
        if value is not None and "\0" in value:
            raise invalid(f"env.{name}", "a value cannot hold NUL")
    return merged(environment.variables, body.env)


def _directory(cwd: str | None, environment: Environment) -> str:
    if not cwd:
        return environment.directory()
    return resolved(checked(cwd, field="cwd"), base=environment.directory())


def _stdin(body: ExecuteRequest) -> bytes | None:
    if body.stdin is None:
        return None
    if body.stdin_encoding == "utf-8":
        return body.stdin.encode()
    try:
        return a2b_base64(body.stdin.encode(), strict_mode=True)
    except Base64Error as error:
        raise invalid("stdin", f"this is not base64: {error}", code="INVALID_BASE64") from error
