"""git's machine-readable output, taken apart. Names are bytes to git: what is not UTF-8 becomes U+FFFD."""

import re
from collections.abc import Iterator

from sandpod_runtime.models.git import Branch, Commit, PushUpdate, Signature, StatusEntry

# Each field ends with NUL, which no part of a commit can hold; -z ends the record with one more.
LOG_FIELDS = ("H", "P", "an", "ae", "aI", "cn", "ce", "cI", "D", "s", "b")
LOG_FORMAT = "--format=tformat:" + "%x00".join(f"%{field}" for field in LOG_FIELDS)
BRANCH_FIELDS = ("HEAD", "refname", "objectname", "upstream:short", "upstream:track", "symref", "subject")
BRANCH_FORMAT = "--format=" + "%00".join(f"%({field})" for field in BRANCH_FIELDS)
_LONGEST_OUTCOME = 1000
_TRACK = re.compile(r"(ahead|behind) (\d{1,18})")
_CONFLICT = re.compile(r"^CONFLICT \([^)]*\): (.*)$", re.MULTILINE)


class Status:
    """What `git status --porcelain=v2 --branch -z` says. Entries beyond `limit` are counted only."""

    def __init__(self, output: bytes, *, limit: int) -> None:
        self.commit: str | None = None
        self.branch: str | None = None
        self.upstream: str | None = None
        self.ahead: int | None = None
        self.behind: int | None = None
        self.entries: list[StatusEntry] = []
        self.count = 0
        records = iter(text(output).split("\0"))
        for record in records:
            kind, _, rest = record.partition(" ")
            if kind == "#":
                self._header(rest)
            elif entry := _entry(kind, rest, records):
                self.count += 1
                if self.count <= limit:
                    self.entries.append(entry)

    def _header(self, header: str) -> None:
        name, _, value = header.partition(" ")
        if name == "branch.oid" and value != "(initial)":
            self.commit = value
        elif name == "branch.head" and value != "(detached)":
            self.branch = value
        elif name == "branch.upstream":
            self.upstream = value
        elif name == "branch.ab" and (found := re.fullmatch(r"\+(\d{1,18}) -(\d{1,18})", value)):
            self.ahead, self.behind = int(found[1]), int(found[2])


def _entry(kind: str, rest: str, records: Iterator[str]) -> StatusEntry | None:
    if kind in ("?", "!") and rest:
        name = "untracked" if kind == "?" else "ignored"
        return StatusEntry(path=rest, kind=name, index=".", worktree=kind)
    columns = {"1": 7, "2": 8, "u": 9}.get(kind)
    if columns is None:
        return None
    fields = rest.split(" ", columns)
    if len(fields) <= columns or len(fields[0]) != 2:
        return None  # the output was cut in the middle of it
    index, worktree = fields[0]
    if kind == "2":
        entry = StatusEntry(path=fields[-1], kind="renamed", index=index, worktree=worktree)
        entry.original_path = next(records, "")
        return entry
    return StatusEntry(
        path=fields[-1], kind="changed" if kind == "1" else "unmerged", index=index, worktree=worktree
    )


def commits(output: bytes) -> list[Commit]:
    """What `git log -z` says in LOG_FORMAT. A record that was cut off is left out."""
    width = len(LOG_FIELDS)
    fields = text(output).split("\0")
    found: list[Commit] = []
    for at in range(0, len(fields) - width, width):
        commit, parents, author, email, date, committer, c_email, c_date, refs, subject, body = fields[
            at : at + width
        ]
        found.append(
            Commit(
                commit=commit,
                parents=parents.split(),
                author=Signature(name=author, email=email, date=date),
                committer=Signature(name=committer, email=c_email, date=c_date),
                refs=[ref for ref in refs.split(", ") if ref],
                subject=subject,
                body=body.rstrip("\n"),
            )
        )
    return found


def branches(output: bytes) -> list[Branch]:
    """What `git for-each-ref` says in BRANCH_FORMAT."""
    found: list[Branch] = []
    for line in text(output).split("\n"):
        fields = line.split("\0")
        if len(fields) != len(BRANCH_FIELDS):
            continue
        current, ref, commit, upstream, track, symref, subject = fields
        if symref:
            continue  # origin/HEAD, another name of a branch that is listed as well
        remote = ref.startswith("refs/remotes/")
        branch = Branch(
            name=ref.removeprefix("refs/heads/").removeprefix("refs/remotes/"),
            commit=commit,
            subject=subject,
            current=current == "*",
            remote=remote,
        )
        if upstream:
            branch.upstream = upstream
            counts = {word: int(number) for word, number in _TRACK.findall(track)}
            branch.ahead, branch.behind = counts.get("ahead", 0), counts.get("behind", 0)
            branch.gone = track == "[gone]"
        found.append(branch)
    return found


def push_updates(output: bytes) -> list[PushUpdate]:
    """What `git push --porcelain` says."""
    found: list[PushUpdate] = []
    for line in text(output).split("\n"):
        fields = line.split("\t")
        if len(fields) == 3 and len(fields[0]) == 1 and ":" in fields[1]:
            source, _, target = fields[1].partition(":")
            found.append(PushUpdate(flag=fields[0], source=source, target=target, summary=fields[2]))
    return found


def conflicts(output: bytes) -> list[str]:
    """What a merge says that a human has to decide."""
    return [match[1] for match in _CONFLICT.finditer(text(output))][:100]


def text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def outcome(output: bytes) -> str:
    """What git says it did; what is indented are the changes, file by file."""
    lines = [line for line in text(output).splitlines() if line and not line.startswith(" ")]
    return lines[-1][:_LONGEST_OUTCOME] if lines else ""
