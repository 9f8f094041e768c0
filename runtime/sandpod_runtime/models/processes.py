"""Processes: how they are started, what is told of them, and the events of their logs."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Encoding, Event, Milliseconds, Reply

Status = Literal["starting", "running", "completed", "failed", "killed", "error"]
StreamName = Literal["stdout", "stderr"]
Restart = Literal["Always", "OnFailure", "Never"]

LONGEST_TEXT = 4096
LONGEST_PATTERN = 1000


class DeclaredProcess(msgspec.Struct, rename="camel", kw_only=True):
    """A process of the sandbox's specification: started at the bind, and again when it ends."""

    name: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    command: Annotated[str, Meta(min_length=1)]
    cwd: str | None = None
    env: dict[str, str] = {}
    restart: Restart = "Always"
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None


class StartProcessRequest(msgspec.Struct, rename="camel", kw_only=True):
    command: str | None = None
    session_id: str | None = None
    process_id: str | None = None
    timeout_ms: Milliseconds | None = None
    env: dict[str, str | None] | None = None
    cwd: str | None = None
    origin: str | None = None
    encoding: str | None = None
    auto_cleanup: bool | None = None
    # What 0.12 does not have.
    stdin: Annotated[
        Literal["open"] | None, Meta(description="keep its standard input open for POST …/stdin")
    ] = None


class StartProcessReply(Reply):
    process_id: str
    pid: int
    command: str
    session_id: str | UnsetType = UNSET


class ProcessInfo(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    command: str
    status: Status
    start_time: str
    pid: int | UnsetType = UNSET
    end_time: str | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    declared: Annotated[bool | UnsetType, Meta(description="it is one of the sandbox's `processes`")] = UNSET
    restarts: Annotated[int | UnsetType, Meta(description="how often it was started again")] = UNSET
    port: int | UnsetType = UNSET


class ListProcessesQuery(msgspec.Struct, rename="camel", kw_only=True):
    status: Status | None = None


class ProcessListReply(Reply):
    processes: list[ProcessInfo]


class ProcessReply(Reply):
    process: ProcessInfo


class LogsQuery(msgspec.Struct, rename="camel", kw_only=True):
    stdout_offset: Annotated[
        Annotated[int, Meta(ge=0, le=2**53)] | None,
        Meta(description="from this byte of stdout on; with one offset the other stream starts at 0"),
    ] = None
    stderr_offset: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    encoding: Encoding = "utf-8"


class LogsReply(Reply):
    """The offsets count all bytes that the process ever wrote; `…Dropped` of those asked for are gone."""

    process_id: str
    stdout: str
    stderr: str
    status: Status
    stdout_next: Annotated[int, Meta(description="the offset that continues this answer")]
    stderr_next: int
    stdout_dropped: int
    stderr_dropped: int
    encoding: Encoding | UnsetType = UNSET


class ProcessInfoEvent(Event, tag="process_info", kw_only=True):
    process_id: str
    command: str
    status: Status
    pid: int | UnsetType = UNSET
    stdout_dropped: Annotated[int, Meta(description="bytes that the replay does not have any more")]
    stderr_dropped: int


class LogStdoutEvent(Event, tag="stdout"):
    data: str
    process_id: str


class LogStderrEvent(Event, tag="stderr"):
    data: str
    process_id: str


class GapEvent(Event, tag="gap"):
    """The reader was so slow that this much was gone before it could be sent."""

    process_id: str
    stream: StreamName
    bytes: int


class ExitEvent(Event, tag="exit"):
    process_id: str
    exit_code: int
    data: str
    status: Status


class KillReply(Reply):
    process_id: str


class KillAllReply(Reply):
    cleaned_count: int


class SignalRequest(msgspec.Struct, rename="camel", kw_only=True):
    signal: Annotated[int, Meta(ge=1, le=64)] | Annotated[str, Meta(max_length=20)]
    tree: Annotated[bool, Meta(description="to all that it started, not only to itself")] = False


class SignalReply(Reply):
    process_id: str
    signal: int


class StdinRequest(msgspec.Struct, rename="camel", kw_only=True):
    data: str = ""
    encoding: Encoding = "utf-8"
    end: Annotated[bool, Meta(description="close the input after this")] = False


class StdinReply(Reply):
    process_id: str
    pending: Annotated[int, Meta(description="bytes that the process has not read yet")]


class WaitRequest(msgspec.Struct, rename="camel", kw_only=True):
    condition: Literal["exit", "log", "port"] = msgspec.field(name="for")
    timeout_ms: Milliseconds | None = None
    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)] | None = None
    regex: Annotated[str, Meta(min_length=1, max_length=LONGEST_PATTERN)] | None = None
    stream: Annotated[StreamName | None, Meta(description="where to look; absent: in both")] = None
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None


class WaitReply(Reply, kw_only=True):
    process_id: str
    condition: str = msgspec.field(name="for")
    status: Status
    exit_code: int | UnsetType = UNSET
    stream: StreamName | UnsetType = UNSET
    line: Annotated[str | UnsetType, Meta(description="the line that matched, cut at 4096 characters")] = (
        UNSET
    )
