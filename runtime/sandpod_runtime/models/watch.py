"""Watching directories: what a client asks for, and what it is told."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Event, Reply
from sandpod_runtime.watch.pending import Kind

MOST_PATTERNS = 64

Patterns = Annotated[list[str], Meta(max_length=MOST_PATTERNS)]


class WatchRequest(msgspec.Struct, rename="camel", kw_only=True):
    path: Annotated[
        str, Meta(description="A directory or a file; below the workspace, by which a relative one is meant.")
    ]
    recursive: Annotated[bool, Meta(description="Also everything below.")] = True
    include: (
        Annotated[
            Patterns,
            Meta(description="Only what one of these covers. `*` is anything in a segment, `**` anything."),
        ]
        | None
    ) = None
    exclude: (
        Annotated[
            Patterns,
            Meta(
                description="Not what one of these covers. Without both: `.git`, `node_modules`, `.DS_Store`."
            ),
        ]
        | None
    ) = None
    events: Annotated[list[Kind], Meta(description="All but `attrib` when this is empty.")] | None = None
    session_id: Annotated[str, Meta(description="Has no effect.")] | None = None


class WatchCheckRequest(WatchRequest):
    since: Annotated[str, Meta(description="The version that an earlier check told.")] | None = None


class WatchingEvent(msgspec.Struct, rename="camel", kw_only=True, tag_field="type", tag="watching"):
    """From now on nothing is missed."""

    path: str
    watch_id: str


class ChangeEvent(Event, tag="event"):
    """A rename is `move_from` and `move_to`. What a directory already held when it was found is `create`."""

    event_type: Kind
    path: str
    is_directory: bool


class StoppedEvent(msgspec.Struct, rename="camel", kw_only=True, tag_field="type", tag="stopped"):
    """What was watched is gone."""

    reason: str


class WatchErrorEvent(msgspec.Struct, rename="camel", kw_only=True, tag_field="type", tag="error"):
    """Changes were lost: look at the directory again, and watch anew."""

    error: str


class WatchCheckReply(Reply):
    status: Annotated[
        Literal["unchanged", "changed", "resync"],
        Meta(description="`resync`: the watch is another one, so anything may have changed."),
    ]
    version: Annotated[str, Meta(description="What the next check gives as `since`.")]
    reason: Literal["expired", "restarted"] | UnsetType = UNSET
