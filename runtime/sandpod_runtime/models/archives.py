"""Archives: what a client asks for in the query, and what it gets."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sandpod_runtime.models.common import Reply

ArchiveFormat = Literal["tar.gz", "tar", "zip"]


class PackQuery(msgspec.Struct, rename="camel", kw_only=True):
    path: Annotated[str, Meta(description="a directory, whose entries are packed, or a single file")]
    format: ArchiveFormat = "tar.gz"
    level: Annotated[int, Meta(ge=0, le=9, description="0 is fast, 9 is small; of no meaning for tar")] = 6
    exclude: Annotated[
        str | None, Meta(description="what to leave out, as a line of a .gitignore; may be given repeatedly")
    ] = None
    session_id: Annotated[str | None, Meta(description="whose directory a relative path starts from")] = None


class UnpackQuery(msgspec.Struct, rename="camel", kw_only=True):
    path: Annotated[str, Meta(description="the directory to unpack into; it is made when it is missing")]
    format: Annotated[ArchiveFormat | None, Meta(description="by default the first bytes tell")] = None
    links: Annotated[
        Literal["inside", "all"],
        Meta(description="which symbolic links to make: those that stay below the directory, or all"),
    ] = "inside"
    max_bytes: Annotated[int, Meta(ge=0, le=1 << 44, description="what it may unpack to, in total")] = 8 << 30
    max_file_bytes: Annotated[int, Meta(ge=0, le=1 << 44, description="what one file may unpack to")] = (
        8 << 30
    )
    max_entries: Annotated[int, Meta(ge=0, le=1_000_000)] = 250_000
    max_ratio: Annotated[
        int, Meta(ge=1, le=2000, description="how many times its own size it may unpack to, beyond 64 MiB")
    ] = 200
    session_id: Annotated[str | None, Meta(description="whose directory a relative path starts from")] = None


class LeftOut(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    reason: str


class UnpackReply(Reply):
    path: str
    entries: Annotated[int, Meta(description="how many files, directories and links were made")]
    bytes: Annotated[int, Meta(description="how many bytes their contents have")]
    skipped: Annotated[list[LeftOut], Meta(description="the first 100 entries that were left out")]
    skipped_count: int
