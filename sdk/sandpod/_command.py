"""A command on its way to the runtime, and the runtime's events on their way back. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandpod._failures import from_protocol
from sandpod._results import Output
from sandpod._sse import EventParser, EventTooLarge
from sandpod.errors import Invalid, RuntimeFailure

Json = dict[str, Any]

# What goes in travels in one request: enough for a script or a patch, too little to fill the runtime's
# memory.
MAX_STDIN_BYTES = 32 << 20
# The runtime cuts output into pieces far smaller than this.
_MAX_EVENT_BYTES = 16 << 20
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./+-]+")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset(
    [
        "case",
        "coproc",
        "do",
        "done",
        "elif",
        "else",
        "esac",
        "fi",
        "for",
        "function",
        "if",
        "in",
        "select",
        "then",
        "time",
        "until",
        "while",
    ]
)


@dataclass(frozen=True, slots=True)
class Exited:
    code: int


def shell_line(command: str | Sequence[str]) -> str:
    """A text is a line for the shell as it is. A sequence is one program and its arguments, to the letter."""
    if isinstance(command, str):
        line = command
    else:
        words = list(command)
        line = " ".join([_first(words[0]), *map(shlex.quote, words[1:])]) if words else ""
    if not line.strip():
        raise Invalid("There is no command to run.")
    _check_text(line, what="the command")
    return line


def _first(word: str) -> str:
    # Quoted, a word is the name of a program, also when it looks like an assignment or one of the shell's
    # keywords.
    return word if _PLAIN_WORD.fullmatch(word) and word not in _KEYWORDS else _quoted(word)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\"'\"'") + "'"


def body(
    *,
    command: str | Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | None,
    timeout: float | None,
    stdin: bytes | None,
) -> Json:
    """What `POST api/execute/stream` is sent.

    A client that hangs up ends the command and all that it started.
    """
    document: Json = {
        "command": shell_line(command),
        "outputEncoding": "base64",
        "onDisconnect": "kill",
    }
    if env:
        for name, value in env.items():
            if not _ENV_NAME.fullmatch(name):
                raise Invalid(f"{name!r} cannot be the name of an environment variable.")
            _check_text(value, what=f"the variable {name}")
        document["env"] = dict(env)
    if cwd is not None:
        _check_text(cwd, what="the working directory")
        document["cwd"] = cwd
    if timeout is not None:
        if timeout <= 0:
            raise Invalid("A timeout is longer than nothing.")
        document["timeoutMs"] = max(1, round(timeout * 1000))
    if stdin:
        if len(stdin) > MAX_STDIN_BYTES:
            raise Invalid(f"Standard input is larger than {MAX_STDIN_BYTES >> 20} MiB.")
        document["stdin"] = base64.b64encode(stdin).decode()
        document["stdinEncoding"] = "base64"
    return document


def _check_text(text: str, *, what: str) -> None:
    if "\0" in text:
        raise Invalid(f"There is a NUL character in {what}.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        # Python lets bytes that are no UTF-8 through from the command line, as lone surrogates.
        raise Invalid(f"There are bytes in {what} that are not UTF-8.") from error


class ExecEvents:
    """The stream's bytes in, output and the end of the command out."""

    def __init__(self) -> None:
        self._parser = EventParser(max_event_bytes=_MAX_EVENT_BYTES)

    def feed(self, piece: bytes) -> list[Output | Exited]:
        try:
            events = self._parser.feed(piece)
        except EventTooLarge as error:
            raise _nonsense(str(error)) from error
        decoded = (_decode(event) for event in events if event)
        return [event for event in decoded if event is not None]


def _decode(data: bytes) -> Output | Exited | None:
    try:
        event: Json = json.loads(data)
        match event["type"]:
            case "stdout" | "stderr" as stream:
                return Output(stream=stream, data=base64.b64decode(event["data"], validate=True))
            case "complete":
                return Exited(int(event["exitCode"]))
            case "error":
                message = str(event.get("error") or event.get("data") or "the stream failed")
                raise from_protocol(
                    {**event, "code": str(event.get("code") or "STREAM_START_ERROR"), "message": message},
                    status=200,
                    retry_after=None,
                )
            case _:
                return None
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise _nonsense(str(error)) from error


def _nonsense(detail: str) -> RuntimeFailure:
    return RuntimeFailure(f"The runtime's answer cannot be understood: {detail}.", code="INVALID_RESPONSE")
