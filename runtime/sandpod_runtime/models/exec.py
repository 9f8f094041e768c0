"""Commands: what a client asks for, and what it gets."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Cut, Encoding, Event, Milliseconds, Reply

LARGEST_OUTPUT = 1 << 30


class ExecuteRequest(msgspec.Struct, rename="camel", kw_only=True):
    command: str | None = None
    session_id: str | None = None
    timeout_ms: Milliseconds | None = None
    env: dict[str, str | None] | None = None
    cwd: str | None = None
    origin: str | None = None
    background: bool | None = None
    # What 0.12 does not have.
    stdin: str | None = None
    stdin_encoding: Encoding = "utf-8"
    output_encoding: Encoding = "utf-8"
    max_output_bytes: Annotated[int, Meta(ge=0, le=LARGEST_OUTPUT)] | None = None
    on_disconnect: Literal["detach", "kill"] | None = None


class ExecuteReply(Reply):
    """`success` says whether the exit code is 0."""

    exit_code: int
    stdout: str
    stderr: str
    command: str
    duration: int
    session_id: str | UnsetType = UNSET
    output_encoding: Encoding | UnsetType = UNSET
    stdout_cut: Cut | UnsetType = UNSET
    stderr_cut: Cut | UnsetType = UNSET


class StartEvent(Event, tag="start"):
    command: str
    pid: int
    process_id: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET


class StdoutEvent(Event, tag="stdout"):
    data: str


class StderrEvent(Event, tag="stderr"):
    data: str


class CompleteEvent(Event, tag="complete"):
    exit_code: int


class ErrorEvent(Event, tag="error"):
    error: str
    data: str
