"""Sessions: what a client asks for, and what it gets."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Milliseconds, Reply


class CreateSessionRequest(msgspec.Struct, rename="camel", kw_only=True):
    id: str | None = None
    env: dict[str, str | None] | None = None
    cwd: Annotated[
        str | None, Meta(description="Where it starts; when it is not there, in the home directory.")
    ] = None
    command_timeout_ms: Annotated[
        Milliseconds | None, Meta(description="For each command that brings no timeoutMs of its own.")
    ] = None
    name: str | None = None
    isolation: bool | None = None


class SessionPlace(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    cwd: str


class CreateSessionReply(Reply):
    id: str
    session_id: str
    message: str
    cwd: str
    shell: Annotated[str, Meta(description="bash; or sh, in an image without bash.")]
    data: SessionPlace
    container_placement_id: str | None
    note: Annotated[str | UnsetType, Meta(description="What a session in this image cannot do.")] = UNSET


class DeleteSessionRequest(msgspec.Struct, rename="camel", kw_only=True):
    session_id: str | None = None


class DeleteSessionReply(Reply):
    session_id: str


class ListSessionsReply(Reply):
    data: list[str]


class SessionReply(Reply):
    id: str
    cwd: str
    state: Annotated[
        Literal["idle", "busy", "saved"],
        Meta(description="saved: from before a sleep, and made again at its first use."),
    ]
    waiting: Annotated[int, Meta(description="Calls that wait for their turn.")]
    shell: str
    missing: Annotated[list[str], Meta(description="What could not be brought over a sleep.")]
    note: str | UnsetType = UNSET
    command_timeout_ms: float | UnsetType = UNSET


class SavedSession(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    lost: Annotated[list[str], Meta(description="What cannot be saved of it.")]


class SaveSessionsReply(Reply):
    sessions: list[SavedSession]
    persistent: Annotated[bool, Meta(description="Whether the state directory outlives this runtime.")]


class RestoreSessionsReply(Reply):
    restored: Annotated[list[str], Meta(description="The ids; each shell is made at its first use.")]
    problems: Annotated[list[str], Meta(description="Files that hold no session's state, and why.")]
