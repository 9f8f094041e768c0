"""git: what a client asks for, and what it gets."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Event, Milliseconds, Reply

LARGEST_DIFF = 16 << 20
MOST_COMMITS = 1000

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Names = Annotated[list[str], Meta(max_length=1000)]
Secret = Annotated[str, Meta(max_length=16_384)]


Directory = Annotated[
    str, Meta(description="A directory of the repository; by default where commands start.")
]


class Place(msgspec.Struct, rename="camel", kw_only=True):
    cwd: Directory | None = None
    session_id: str | None = None
    timeout_ms: Milliseconds | None = None


class Credentials(msgspec.Struct, rename="camel", kw_only=True):
    """For http and https. They go to the repository's own host only, and are stored nowhere."""

    username: Annotated[str, Meta(max_length=1024)] | None = None
    password: Secret | None = None
    token: Annotated[Secret, Meta(description="In place of a password; any user name will do.")] | None = None


class CheckoutRequest(Credentials):
    repo_url: str | None = None
    target_dir: str | None = None
    branch: Annotated[str, Meta(max_length=1024, description="A branch or a tag.")] | None = None
    depth: Count | None = None
    timeout_ms: Annotated[float, Meta(description="More than 0; 600 000 by default.")] | None = None
    session_id: str | None = None
    partial: (
        Annotated[
            bool,
            Meta(
                description="Leave old versions of files at the server until they are needed (default), "
                "unless there are credentials that nobody will have by then."
            ),
        ]
        | None
    ) = None


class CheckoutReply(Reply):
    repo_url: str
    branch: str
    target_dir: str


class CheckoutStartEvent(Event, tag="start"):
    repo_url: str
    target_dir: str


class CheckoutProgressEvent(Event, tag="progress"):
    text: str
    phase: str | UnsetType = UNSET
    percent: int | UnsetType = UNSET
    current: int | UnsetType = UNSET
    total: int | UnsetType = UNSET


class CheckoutCompleteEvent(Event, tag="complete"):
    repo_url: str
    branch: str
    target_dir: str


class CheckoutErrorEvent(Event, tag="error"):
    error: str
    code: str
    message: str
    context: dict[str, object]
    http_status: int
    suggestion: str | UnsetType = UNSET


class StatusRequest(Place):
    untracked: Annotated[
        Literal["no", "normal", "all"], Meta(description="normal: a new directory is one entry.")
    ] = "normal"
    ignored: bool = False


class StatusEntry(msgspec.Struct, rename="camel", kw_only=True):
    """`index` and `worktree` are git's letters: M, A, D, R, C, T, U, and `.` for unchanged."""

    path: str
    kind: Literal["changed", "renamed", "unmerged", "untracked", "ignored"]
    index: str
    worktree: str
    original_path: str | UnsetType = UNSET


class StatusReply(Reply):
    detached: bool
    clean: bool
    entries: list[StatusEntry]
    truncated: bool
    branch: str | UnsetType = UNSET
    commit: str | UnsetType = UNSET
    upstream: str | UnsetType = UNSET
    ahead: int | UnsetType = UNSET
    behind: int | UnsetType = UNSET


class DiffRequest(Place):
    paths: Names = []
    staged: Annotated[bool, Meta(description="What would be committed, in place of what would not.")] = False
    ref: Annotated[str, Meta(max_length=1024, description="A commit, or two as `a..b`.")] | None = None
    context_lines: Annotated[int, Meta(ge=0, le=10_000)] = 3
    max_bytes: Annotated[int, Meta(ge=1, le=LARGEST_DIFF)] = 1 << 20


class DiffReply(Reply):
    diff: str
    truncated: bool


class LogRequest(Place):
    limit: Annotated[int, Meta(ge=1, le=MOST_COMMITS)] = 50
    skip: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    ref: Annotated[str, Meta(max_length=1024)] | None = None
    paths: Names = []


class Signature(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    email: str
    date: str


class Commit(msgspec.Struct, rename="camel", kw_only=True):
    commit: str
    parents: list[str]
    author: Signature
    committer: Signature
    refs: list[str]
    subject: str
    body: str


class LogReply(Reply):
    commits: list[Commit]
    truncated: Annotated[bool, Meta(description="The commits were longer than what is read of them.")]


class InitRequest(Place):
    branch: Annotated[str, Meta(max_length=1024)] | None = None


class AddRequest(Place):
    paths: Names = []
    all: bool = False


class Author(msgspec.Struct, rename="camel", kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=1024)]
    email: Annotated[str, Meta(max_length=1024)]


class CommitRequest(Place):
    message: Annotated[str, Meta(max_length=100_000)] | None = None
    all: Annotated[bool, Meta(description="Also what was changed or deleted and not added.")] = False
    paths: Annotated[Names, Meta(description="Commit these and nothing else.")] = []
    author: Author | None = None
    allow_empty: bool = False


class CommitReply(Reply):
    """`committed` is false when there was nothing to commit; `summary` is what git says."""

    committed: bool
    summary: str
    commit: str | UnsetType = UNSET
    branch: str | UnsetType = UNSET


class PlaceReply(Reply, kw_only=True):
    """What is checked out now; no commit in a repository that has none yet."""

    detached: bool
    branch: str | UnsetType = UNSET
    commit: str | UnsetType = UNSET


class RemoteRequest(Credentials):
    cwd: Directory | None = None
    session_id: str | None = None
    timeout_ms: Milliseconds | None = None
    remote: Annotated[str, Meta(max_length=1024)] | None = None
    branch: Annotated[str, Meta(max_length=1024)] | None = None


class PushRequest(RemoteRequest):
    set_upstream: bool = False
    force: Annotated[bool, Meta(description="Replace the remote's commits, if nobody added to them.")] = False
    tags: bool = False


class PushUpdate(msgspec.Struct, rename="camel", kw_only=True):
    """`flag` is git's: space, +, -, *, = or !."""

    flag: str
    source: str
    target: str
    summary: str


class PushReply(Reply):
    updates: list[PushUpdate]


class PullRequest(RemoteRequest):
    rebase: Annotated[bool, Meta(description="Absent: as the repository is configured.")] | None = None


class PullReply(PlaceReply):
    updated: bool
    summary: str


class FetchRequest(RemoteRequest):
    prune: bool = False


class BranchesRequest(Place):
    remotes: bool = False


class Branch(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    commit: str
    subject: str
    current: bool
    remote: bool
    upstream: str | UnsetType = UNSET
    ahead: int | UnsetType = UNSET
    behind: int | UnsetType = UNSET
    gone: Annotated[bool, Meta(description="The upstream branch was deleted.")] | UnsetType = UNSET


class BranchesReply(Reply):
    branches: list[Branch]
    truncated: bool


class CreateBranchRequest(Place):
    branch: Annotated[str, Meta(max_length=1024)] | None = None
    start: Annotated[str, Meta(max_length=1024, description="HEAD by default.")] | None = None
    switch: bool = False


class SwitchRequest(Place):
    branch: Annotated[
        str, Meta(max_length=1024, description="A branch, also one that only a remote has.")
    ] | (None) = None
    detach: Annotated[bool, Meta(description="`branch` may then be any commit or tag.")] = False
