"""Terminals: how they are made, shown and ended, and the text frames of their sockets."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Reply

LARGEST_SIDE = 4096

Side = Annotated[int, Meta(ge=1, le=LARGEST_SIDE)]


class CreateTerminalRequest(msgspec.Struct, rename="camel", kw_only=True):
    id: Annotated[str | None, Meta(description="`terminal-<uuid>` when it is left out.")] = None
    cwd: str | None = None
    shell: Annotated[
        str | None, Meta(description="A program's name or path, without options. bash, or what there is.")
    ] = None
    cols: Side | None = None
    rows: Side | None = None


class CreateTerminalReply(Reply):
    id: str
    pid: int
    cols: int
    rows: int
    created: Annotated[bool, Meta(description="False: it was there, and is unchanged.")]


class DestroyTerminalRequest(msgspec.Struct, rename="camel", kw_only=True):
    id: str | None = None


class ResizeTerminalRequest(msgspec.Struct, rename="camel", kw_only=True):
    cols: Side
    rows: Side
    id: str | None = None


class TerminalReply(Reply):
    id: str


class TerminalInfo(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    pid: int
    cols: int
    rows: int
    viewers: int
    started_at: str
    cwd: Annotated[str | UnsetType, Meta(description="Of the shell, when it can be seen.")] = UNSET
    session_id: Annotated[str | UnsetType, Meta(description="It belongs to this session: /ws/pty.")] = UNSET


class TerminalListReply(Reply):
    terminals: list[TerminalInfo]
    count: int


class TerminalQuery(msgspec.Struct, rename="camel", kw_only=True):
    """A size that is not two numbers from 1 to 4096 counts as not given."""

    terminal_id: str = ""
    cols: str | None = None
    rows: str | None = None


class PtyQuery(msgspec.Struct, rename="camel", kw_only=True):
    """A size that is not a number from 1 to 4096 counts as not given; an existing terminal keeps its own."""

    session_id: str = ""
    cols: str | None = None
    rows: str | None = None
    shell: str | None = None


class ResizeMessage(msgspec.Struct, tag_field="type", tag="resize", kw_only=True):
    """The one text frame of a client. Binary frames are what is typed."""

    cols: Side
    rows: Side


class ReadyMessage(msgspec.Struct, tag_field="type", tag="ready", kw_only=True):
    """After the replay, before the first live output."""


class ErrorMessage(msgspec.Struct, tag_field="type", tag="error", kw_only=True):
    message: str


class ExitMessage(msgspec.Struct, tag_field="type", tag="exit", kw_only=True):
    """The shell has ended; the socket is closed next. 128 + n for a signal."""

    code: int
    signal: str | UnsetType = UNSET
