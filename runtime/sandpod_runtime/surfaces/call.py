"""From the body of an execute request to what will be done, or to the error that says what is wrong with
it.
"""

import os
from binascii import Error as Base64Error
from binascii import a2b_base64
from dataclasses import dataclass

from sandpod_runtime.environment import Environ, Environment, merged, name_problem
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models import ExecuteRequest
from sandpod_runtime.wire import Request

# What the SDK sends as a session id when its user has turned sessions off.
NO_SESSION = "__DISABLE_SESSION__"
DEFAULT_OUTPUT = 64 << 20
LONGEST_PATH = 4096


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
    # The empty string counts as "not given", and then a header or the query may name a session.
    # `Authorization`, which 0.12 reads as well, may carry a real credential and is never taken for an id.
    given = body.session_id or next(
        filter(
            None,
            (
                request.headers.get("X-Session-Id"),
                request.query.get("session"),
                request.query.get("sessionId"),
            ),
        ),
        NO_SESSION,
    )
    if not given.strip():
        raise invalid("sessionId", "a session id cannot be blank")
    if given != NO_SESSION:
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
    if "\0" in cwd:
        raise invalid("cwd", "a path cannot hold NUL", code="INVALID_PATH")
    if len(os.fsencode(cwd)) > LONGEST_PATH:
        raise invalid("cwd", f"a path is at most {LONGEST_PATH} bytes long", code="INVALID_PATH")
    return cwd if cwd.startswith("/") else os.path.join(environment.directory(), cwd)  # noqa: PTH118 (".." is kept)


def _stdin(body: ExecuteRequest) -> bytes | None:
    if body.stdin is None:
        return None
    if body.stdin_encoding == "utf-8":
        return body.stdin.encode()
    try:
        return a2b_base64(body.stdin.encode(), strict_mode=True)
    except Base64Error as error:
        raise invalid("stdin", f"this is not base64: {error}", code="INVALID_BASE64") from error
