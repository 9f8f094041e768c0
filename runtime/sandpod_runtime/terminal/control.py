"""The text frames of a terminal's socket: what a client may say besides keys, and what it is told."""

from typing import Final

import msgspec

from sandpod_runtime.models.terminals import (
    LARGEST_SIDE,
    ErrorMessage,
    ExitMessage,
    ReadyMessage,
    ResizeMessage,
)
from sandpod_runtime.terminal.pty import Size


class ControlError(Exception):
    """A text frame that says nothing we can do; the message is for the client."""


class _Any(msgspec.Struct):
    type: str


_any = msgspec.json.Decoder(_Any)
_resize = msgspec.json.Decoder(ResizeMessage)
READY: Final = msgspec.json.encode(ReadyMessage())


def wanted_size(text: str) -> Size | None:
    """None for a message of a type that we do not know: clients may be newer than we are."""
    try:
        if _any.decode(text).type != "resize":
            return None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ControlError("Invalid control message") from error
    try:
        found = _resize.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ControlError(f"resize: cols and rows are whole numbers from 1 to {LARGEST_SIDE}") from error
    return Size(cols=found.cols, rows=found.rows)


def error(message: str) -> bytes:
    return msgspec.json.encode(ErrorMessage(message=message))


def ended(code: int, *, signal: str | None) -> bytes:
    return msgspec.json.encode(ExitMessage(code=code, signal=signal or msgspec.UNSET))
