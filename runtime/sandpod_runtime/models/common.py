"""What the models of several surfaces share."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.clock import timestamp

# Numbers up to here are exact in JavaScript; nothing longer is a plausible time in milliseconds.
LONGEST_MS = 2**53

Encoding = Literal["utf-8", "base64"]
Milliseconds = Annotated[float, Meta(ge=0, le=LONGEST_MS)]


class Reply(msgspec.Struct, rename="camel", kw_only=True):
    """What every successful reply carries. A field that is UNSET is left out, as the protocol wants it."""

    success: bool = True
    timestamp: str = msgspec.field(default_factory=timestamp)


class Event(msgspec.Struct, rename="camel", kw_only=True, tag_field="type"):
    """What every event of a stream carries, besides the `type` that its `tag` is."""

    timestamp: str = msgspec.field(default_factory=timestamp)


class Cut(msgspec.Struct, rename="camel", kw_only=True):
    """Output whose middle was too long to keep: after how many bytes, and how many are missing."""

    at: int
    bytes: int


class ErrorReply(msgspec.Struct, rename="camel", kw_only=True):
    code: str
    message: str
    context: dict[str, object]
    http_status: int
    timestamp: str
    request_id: str
    operation: str | UnsetType = UNSET
    suggestion: str | UnsetType = UNSET
