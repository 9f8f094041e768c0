"""From the body of an execute request to what will be done, or to the error that says what is wrong with
it.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64

import msgspec

from sandpod_runtime.environment import name_problem
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.exec import ExecuteRequest
from sandpod_runtime.models.processes import StartProcessRequest
from sandpod_runtime.paths import checked
from sandpod_runtime.session.ids import named, named_or_hinted
from sandpod_runtime.wire import Request

DEFAULT_OUTPUT = 64 << 20


class Call(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    session_id: str | None
    env: dict[str, str | None] | None
    cwd: str | None
    stdin: bytes | None = None
    stdin_open: bool = False
    timeout_ms: float | None
    base64: bool = False
    output_limit: int = DEFAULT_OUTPUT
    kill_on_disconnect: bool = False

    @property
    def timeout(self) -> float | None:
        return self.timeout_ms / 1000 if self.timeout_ms else None

    @property
    def timeout_note(self) -> str:
        number = self.timeout_ms or 0
        return f"Command timed out after {int(number) if number == int(number) else number}ms"


def understood(body: ExecuteRequest, *, request: Request, streamed: bool) -> Call:
    if streamed and body.max_output_bytes is not None:
        raise invalid("maxOutputBytes", "a stream is never cut; this belongs to /api/execute")
    session_id = named_or_hinted(body.session_id, request)
    if session_id and body.stdin is not None and not (streamed or body.background):
        raise invalid("stdin", "a session's own commands have no input; a stream or a process may have one")
    return Call(
        command=_command(body.command),
        session_id=session_id,
        env=_env(body.env),
        cwd=_cwd(body.cwd),
        stdin=_stdin(body),
        timeout_ms=body.timeout_ms,
        base64=body.output_encoding == "base64",
        output_limit=DEFAULT_OUTPUT if body.max_output_bytes is None else body.max_output_bytes,
        kill_on_disconnect=(body.on_disconnect or ("detach" if streamed else "kill")) == "kill",
    )


def of_process(body: StartProcessRequest) -> Call:
    return Call(
        command=_command(body.command),
        session_id=named(body.session_id),
        env=_env(body.env),
        cwd=_cwd(body.cwd),
        stdin=b"" if body.stdin == "open" else None,
        stdin_open=body.stdin == "open",
        timeout_ms=body.timeout_ms,
    )


def _command(command: str | None) -> str:
    if command is None or not command.strip():
        raise Fault("INVALID_COMMAND", "command: give a command line", context={"command": command or ""})
    if "\0" in command:
        raise Fault("INVALID_COMMAND", "command: it cannot hold NUL", context={"command": command})
    return command


def _env(env: dict[str, str | None] | None) -> dict[str, str | None] | None:
    for name, value in (env or {}).items():
        if problem := name_problem(name):
            raise invalid(f"env.{name}", problem)
        if value is not None and "\0" in value:
            raise invalid(f"env.{name}", "a value cannot hold NUL")
    return env


def _cwd(cwd: str | None) -> str | None:
    return checked(cwd, field="cwd") if cwd else None


def _stdin(body: ExecuteRequest) -> bytes | None:
    if body.stdin is None:
        return None
    if body.stdin_encoding == "utf-8":
        return body.stdin.encode()
    try:
        return a2b_base64(body.stdin.encode(), strict_mode=True)
    except Base64Error as error:
        raise invalid("stdin", f"this is not base64: {error}", code="INVALID_BASE64") from error
