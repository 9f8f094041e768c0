"""Searching: what a client asks for, and what it gets. The worker's answers are decoded with these too."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Reply

LONGEST_PATTERN = 4096
Kind = Literal["file", "directory", "symlink", "other"]
Why = Literal["limit", "files", "time", "memory", "size"]
Limit = Annotated[int, Meta(ge=1, le=10_000)]
Lines = Annotated[int, Meta(ge=0, le=50)]
TimeLimit = Annotated[float, Meta(ge=1, le=60_000, description="when the search stops with what it has")]
Truncated = Annotated[
    list[Why],
    Meta(description="why this may not be all: a limit, the time, the worker's memory, or the reply's size"),
]
Gitignore = Annotated[
    bool,
    Meta(description="leave out .git and what .gitignore files and the repository's info/exclude exclude"),
]
Patterns = Annotated[list[str], Meta(max_length=100)]


class FindRequest(msgspec.Struct, rename="camel", kw_only=True):
    pattern: Annotated[
        str,
        Meta(
            max_length=LONGEST_PATTERN,
            description="a glob (* ** ? [] {}); without a slash it is held against names, else against paths",
        ),
    ]
    path: str = "."
    type: Kind | None = None
    include_hidden: bool = False
    gitignore: Gitignore = False
    exclude: Annotated[Patterns, Meta(description="what to leave out, as lines of a .gitignore")] = []
    max_depth: Annotated[int, Meta(ge=1, le=256)] = 256
    limit: Limit = 1000
    sort: Annotated[
        Literal["name", "modified", "size"] | None,
        Meta(description="by name, or the newest or largest first; else as they are found"),
    ] = None
    timeout_ms: TimeLimit = 10_000
    session_id: str | None = None


class FoundFile(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    absolute_path: str
    relative_path: str
    type: Kind
    size: int
    modified_at: str


class FindReply(Reply):
    path: str
    files: list[FoundFile]
    count: int
    truncated: Truncated
    unreadable: Annotated[int, Meta(description="how many directories could not be read")]


class GrepRequest(msgspec.Struct, rename="camel", kw_only=True):
    pattern: Annotated[
        str, Meta(max_length=LONGEST_PATTERN, description="a regular expression (Python's), for one line")
    ]
    path: Annotated[str, Meta(description="a directory, or a single file")] = "."
    literal: bool = False
    case_sensitive: bool = True
    include: Annotated[Patterns, Meta(description="globs, one of which a file has to match")] = []
    exclude: Annotated[Patterns, Meta(description="what to leave out, as lines of a .gitignore")] = []
    include_hidden: bool = False
    gitignore: Gitignore = True
    before: Annotated[Lines, Meta(description="lines of context before a match")] = 0
    after: Annotated[Lines, Meta(description="lines of context after a match")] = 0
    limit: Limit = 1000
    max_files: Annotated[int, Meta(ge=1, le=10_000, description="how many files with matches")] = 1000
    max_file_size: Annotated[int, Meta(ge=1, le=64 << 20, description="larger files are skipped")] = 10 << 20
    max_line_length: Annotated[
        int, Meta(ge=20, le=10_000, description="of longer lines the part around the match is shown")
    ] = 500
    timeout_ms: TimeLimit = 10_000
    session_id: str | None = None


class Match(msgspec.Struct, rename="camel", kw_only=True):
    absolute_path: str
    relative_path: str
    line: Annotated[int, Meta(description="counted from 1")]
    column: Annotated[int, Meta(description="where the first match in the line begins, counted from 1")]
    length: int
    text: str
    text_starts_at: (
        Annotated[int, Meta(description="the column that `text` begins with, when it was cut")] | UnsetType
    ) = UNSET
    before: list[str] | UnsetType = UNSET
    after: list[str] | UnsetType = UNSET


class GrepReply(Reply):
    path: str
    matches: list[Match]
    count: int
    files_matched: int
    files_searched: int
    binary_skipped: int
    large_skipped: int
    unreadable: Annotated[int, Meta(description="how many files and directories could not be read")]
    truncated: Truncated


class FindSummary(msgspec.Struct, rename="camel", kw_only=True):
    """The worker's last line."""

    truncated: list[Why]
    unreadable: int = 0


class GrepSummary(FindSummary):
    files_matched: int = 0
    files_searched: int = 0
    binary_skipped: int = 0
    large_skipped: int = 0
