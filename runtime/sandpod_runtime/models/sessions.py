"""Sessions: what a client asks for, and what it gets."""

from typing import Annotated

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
    shell: Annotated[str, Meta(description="bash; or sh, which keeps less.")]
    data: SessionPlace
    container_placement_id: str | None


class DeleteSessionRequest(msgspec.Struct, rename="camel", kw_only=True):
    session_id: str | None = None


class DeleteSessionReply(Reply):
    session_id: str


class ListSessionsReply(Reply):
    data: list[str]


class SessionReply(Reply):
    id: str
    cwd: str
    shell: str
    busy: Annotated[bool, Meta(description="A command runs in it.")]
    waiting: Annotated[int, Meta(description="Calls that wait for their turn.")]
    command_timeout_ms: float | UnsetType = UNSET
