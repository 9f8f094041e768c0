"""Files: what a client asks for, and what it gets."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import LONGEST_MS, Encoding, Reply

MOST_ENTRIES = 1_000_000
_DEFAULT_ENTRIES = 100_000
_MOST_EDITS = 256

Charset = Annotated[
    Literal["utf-8", "latin-1", "utf-16"],
    Meta(description="what the bytes of a text mean; it concerns no content in base64"),
]
Mode = Annotated[
    str | int, Meta(description='permissions: octal digits in a text ("0644"), or the number itself (420)')
]
Position = Annotated[int, Meta(ge=0, le=LONGEST_MS)]
Line = Annotated[int, Meta(ge=1, le=LONGEST_MS)]
Description = Annotated[
    str | None, Meta(description="`base64`, or `utf-8` for text; anything else decides by the kind of file")
]


class PathRequest(msgspec.Struct, rename="camel", kw_only=True):
    """A relative path is below the session's directory, or the workspace when there is no session."""

    path: str | None = None
    session_id: str | None = None


class ReadRequest(PathRequest):
    encoding: Description = None
    # What 0.12 does not have.
    charset: Charset = "utf-8"
    offset: Annotated[Position, Meta(description="the first byte that is read")] | None = None
    length: Annotated[Position, Meta(description="how many bytes are read at most")] | None = None
    start_line: Annotated[Line, Meta(description="the first line that is read, counted from 1")] | None = None
    end_line: Annotated[Line, Meta(description="the last line that is read")] | None = None


class ReadReply(Reply):
    path: str
    content: str
    encoding: Encoding
    is_binary: bool
    mime_type: str
    size: Annotated[int, Meta(description="of the whole file, in bytes")]
    offset: int | UnsetType = UNSET
    length: Annotated[int, Meta(description="how many bytes `content` stands for")] | UnsetType = UNSET
    start_line: int | UnsetType = UNSET
    end_line: Annotated[int, Meta(description="the last line that there was")] | UnsetType = UNSET
    total_lines: int | UnsetType = UNSET


class StreamEvent(msgspec.Struct, rename="camel", kw_only=True, tag_field="type"):
    """The events of this stream carry no time, as 0.12 has it."""


class MetadataEvent(StreamEvent, tag="metadata"):
    mime_type: str
    size: int
    is_binary: bool
    encoding: Encoding


class ChunkEvent(StreamEvent, tag="chunk"):
    data: str


class CompleteEvent(StreamEvent, tag="complete"):
    bytes_read: int


class ErrorEvent(StreamEvent, tag="error"):
    error: str


class WriteRequest(PathRequest):
    content: str
    encoding: Annotated[str | None, Meta(description="`base64`; with anything else `content` is a text")] = (
        None
    )
    # What 0.12 does not have.
    charset: Charset = "utf-8"
    mode: Mode | None = None
    create_only: Annotated[bool, Meta(description="refuse with FILE_EXISTS if there is something")] = False


class WriteReply(Reply):
    path: str
    size: int


class AppendRequest(PathRequest):
    content: str
    encoding: str | None = None


class InsertRequest(PathRequest):
    line: Annotated[Line, Meta(description="the number that the first inserted line will have")]
    content: str


class InsertReply(Reply):
    path: str
    size: int
    total_lines: int


class Replacement(msgspec.Struct, rename="camel", kw_only=True):
    old: Annotated[str, Meta(min_length=1, description="exactly as it is in the file, and there once")]
    new: str
    all: Annotated[bool, Meta(description="replace every place where `old` is")] = False


class ReplaceRequest(PathRequest):
    edits: Annotated[
        list[Replacement],
        Meta(min_length=1, max_length=_MOST_EDITS, description="each applies to what the one before it left"),
    ]


class ReplaceReply(Reply):
    path: str
    size: int
    replacements: Annotated[list[int], Meta(description="how often each edit was made")]


class PathReply(Reply):
    path: str


class DeleteRequest(PathRequest):
    recursive: Annotated[bool, Meta(description="also a directory, with all that it holds")] = False


class RenameRequest(msgspec.Struct, rename="camel", kw_only=True):
    old_path: str | None = None
    new_path: str | None = None
    session_id: str | None = None


class MoveRequest(msgspec.Struct, rename="camel", kw_only=True):
    source_path: str | None = None
    destination_path: str | None = None
    session_id: str | None = None


class MoveReply(Reply):
    path: str
    new_path: str


class CopyRequest(MoveRequest):
    recursive: bool = False


class MakeDirectoryRequest(PathRequest):
    recursive: bool = False
    mode: Mode | None = None


class MakeDirectoryReply(Reply):
    path: str
    recursive: bool


class ExistsReply(Reply):
    path: str
    exists: bool


class ListOptions(msgspec.Struct, rename="camel", kw_only=True):
    recursive: bool = False
    include_hidden: bool = False
    limit: Annotated[int, Meta(ge=1, le=MOST_ENTRIES)] = _DEFAULT_ENTRIES


class ListRequest(PathRequest):
    options: ListOptions | None = None


class OwnerPermissions(msgspec.Struct, rename="camel", kw_only=True):
    """What the mode allows the owner."""

    readable: bool
    writable: bool
    executable: bool


class FileEntry(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    absolute_path: str
    relative_path: str
    type: Annotated[str, Meta(description="`file`, `directory`, `symlink` or `other`")]
    size: int
    modified_at: str
    mode: Annotated[str, Meta(description="nine characters, such as `rw-r--r--`")]
    permissions: OwnerPermissions
    octal: Annotated[str, Meta(description="all permission bits, such as `0644`")]
    uid: int
    gid: int
    owner: Annotated[str, Meta(description="the user's name, else the number")]
    group: str
    hidden: bool
    target: Annotated[str, Meta(description="where a symbolic link leads to")] | UnsetType = UNSET


class ListReply(Reply):
    path: str
    files: list[FileEntry]
    count: int
    truncated: Annotated[bool, Meta(description="there was more than `limit`")] | UnsetType = UNSET


class StatRequest(PathRequest):
    follow: Annotated[bool, Meta(description="look at what a symbolic link leads to")] = False


class StatReply(Reply):
    path: str
    file: FileEntry
    accessed_at: str
    changed_at: str
    links: int
    device: int
    inode: int


class ChmodRequest(PathRequest):
    mode: Mode
    recursive: bool = False


class ChmodReply(Reply):
    path: str
    mode: str
    changed: Annotated[int, Meta(description="of how many files and directories the mode was set")]


class SymlinkRequest(PathRequest):
    target: Annotated[str, Meta(description="what the link will hold, as it is given")]


class SymlinkReply(Reply):
    path: str
    target: str
