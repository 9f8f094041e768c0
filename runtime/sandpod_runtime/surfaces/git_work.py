"""What one does in a repository that is there: look, commit, and exchange with its remotes."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET

from sandpod_runtime.budget import Budget
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.git.failures import lacks_identity
from sandpod_runtime.git.parsing import (
    BRANCH_FORMAT,
    LOG_FORMAT,
    Status,
    branches,
    commits,
    outcome,
    text,
)
from sandpod_runtime.git.program import Git, Job, current_branch, failure, head
from sandpod_runtime.git.requests import Surroundings, checked_name, checked_paths, with_author
from sandpod_runtime.models.git import (
    AddRequest,
    BranchesReply,
    BranchesRequest,
    CommitReply,
    CommitRequest,
    CreateBranchRequest,
    DiffReply,
    DiffRequest,
    InitRequest,
    LogReply,
    LogRequest,
    PlaceReply,
    StatusReply,
    StatusRequest,
    SwitchRequest,
)
from sandpod_runtime.paths import checked, resolved, shown
from sandpod_runtime.routing import Endpoint, Handler, Model, Routes
from sandpod_runtime.session.ids import named_or_hinted
from sandpod_runtime.wire import Bodies, Request, reply

MOST_ENTRIES = 10_000
MOST_BRANCHES = 1000
_LISTING = 4 << 20
# Paths mean themselves: no `:(exclude)`, no wildcards.
_LITERAL = "--literal-pathspecs"
# Linux takes 128 KiB for one argument.
_LONGEST_MESSAGE = 120_000
_NOTHING = ("nothing to commit", "nothing added to commit", "no changes added to commit")
_ERRORS = (
    "FILE_EXISTS",
    "GIT_REPOSITORY_NOT_FOUND",
    "GIT_BRANCH_NOT_FOUND",
    "GIT_OPERATION_FAILED",
    "COMMAND_NOT_FOUND",
    "FILE_NOT_FOUND",
    "NOT_DIRECTORY",
    "RESOURCE_BUSY",
)

_status = msgspec.json.Decoder(StatusRequest)
_diff = msgspec.json.Decoder(DiffRequest)
_log = msgspec.json.Decoder(LogRequest)
_init = msgspec.json.Decoder(InitRequest)
_add = msgspec.json.Decoder(AddRequest)
_commit = msgspec.json.Decoder(CommitRequest)
_branches = msgspec.json.Decoder(BranchesRequest)
_branch = msgspec.json.Decoder(CreateBranchRequest)
_switch = msgspec.json.Decoder(SwitchRequest)


class GitWork:
    def __init__(self, *, git: Git, surroundings: Surroundings, bodies: Bodies, memory: Budget) -> None:
        self._git = git
        self._surroundings = surroundings
        self._bodies = bodies
        self._memory = memory

    def routes(self) -> Routes:
        def endpoint(handler: Handler, body: Model, answer: Model, summary: str) -> Endpoint:
            return Endpoint(
                handler=handler, tag="git", summary=summary, body=body, reply=answer, errors=_ERRORS
            )

        return {
            ("POST", "/api/git/status"): endpoint(
                self._status, StatusRequest, StatusReply, "What has changed, and on which branch."
            ),
            ("POST", "/api/git/diff"): endpoint(
                self._diff, DiffRequest, DiffReply, "The changes, as a patch."
            ),
            ("POST", "/api/git/log"): endpoint(
                self._log, LogRequest, LogReply, "The commits, the latest first."
            ),
            ("POST", "/api/git/init"): endpoint(
                self._init, InitRequest, PlaceReply, "Make a repository of a directory."
            ),
            ("POST", "/api/git/add"): endpoint(
                self._add, AddRequest, PlaceReply, "Choose what the next commit takes."
            ),
            ("POST", "/api/git/commit"): endpoint(self._commit, CommitRequest, CommitReply, "Commit."),
            ("POST", "/api/git/branches"): endpoint(
                self._branches, BranchesRequest, BranchesReply, "The branches, the latest first."
            ),
            ("POST", "/api/git/branch"): endpoint(
                self._branch, CreateBranchRequest, PlaceReply, "Make a branch."
            ),
            ("POST", "/api/git/switch"): endpoint(
                self._switch, SwitchRequest, PlaceReply, "Check out another branch."
            ),
        }

    async def _status(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _status)
        job = await self._surroundings.job(body, request)
        arguments = ["status", "--porcelain=v2", "--branch", "-z", f"--untracked-files={body.untracked}"]
        if body.ignored:
            arguments.append("--ignored")
        with self._git.slots.one(), self._held(_LISTING):
            output = await self._git.succeed(job, arguments, limit=_LISTING)
            found = Status(output.stdout, limit=MOST_ENTRIES)
        answer = StatusReply(
            detached=found.branch is None,
            clean=found.count == 0,
            entries=found.entries,
            truncated=output.cut or found.count > MOST_ENTRIES,
        )
        answer.branch, answer.commit = found.branch or UNSET, found.commit or UNSET
        answer.upstream = found.upstream or UNSET
        if found.ahead is not None and found.behind is not None:
            answer.ahead, answer.behind = found.ahead, found.behind
        return reply(answer)

    async def _diff(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _diff)
        arguments = [_LITERAL, "diff", "--no-color", "--no-ext-diff", f"--unified={body.context_lines}"]
        if body.staged:
            arguments.append("--cached")
        if ref := checked_name(body.ref, field="ref"):
            arguments.append(ref)
        arguments += ["--", *checked_paths(body.paths)]
        job = _about(await self._surroundings.job(body, request), branch=ref)
        with self._git.slots.one(), self._held(body.max_bytes):
            output = await self._git.succeed(job, arguments, limit=body.max_bytes)
            return reply(DiffReply(diff=text(output.stdout), truncated=output.cut))

    async def _log(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _log)
        # A signature's check would be printed between the records.
        arguments = ["-c", "log.showSignature=false", _LITERAL, "log", "-z", "--no-color", "--encoding=UTF-8"]
        arguments += [LOG_FORMAT, f"--max-count={body.limit}", f"--skip={body.skip}"]
        ref = checked_name(body.ref, field="ref")
        arguments += [ref or "HEAD", "--", *checked_paths(body.paths)]
        job = _about(await self._surroundings.job(body, request), branch=ref)
        with self._git.slots.one(), self._held(_LISTING):
            if ref is None and await head(self._git, job) is None:
                return reply(LogReply(commits=[], truncated=False))
            output = await self._git.succeed(job, arguments, limit=_LISTING)
            return reply(LogReply(commits=commits(output.stdout), truncated=output.cut))

    async def _init(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _init)
        branch = checked_name(body.branch, field="branch")
        base = self._surroundings.directory(named_or_hinted(body.session_id, request))
        target = resolved(checked(body.cwd, field="cwd"), base=base) if body.cwd else base
        job = await self._surroundings.job(msgspec.structs.replace(body, cwd=None), request)
        job = _about(job, path=shown(target), repository=shown(target))
        # Not --initial-branch: git has it since 2.28, and this is ignored by an older one.
        names = ["-c", f"init.defaultBranch={branch}"] if branch else []
        with self._git.slots.one():
            await self._git.succeed(job, [*names, "init", "--quiet", "--", target])
            return await self._place(replace(job, directory=target))

    async def _add(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _add)
        paths = checked_paths(body.paths)
        if not paths and not body.all:
            raise invalid("paths", "give paths, or all")
        job = _about(await self._surroundings.job(body, request), path=paths[0] if paths else None)
        arguments = [_LITERAL, "add", *(["--all"] if body.all else []), "--", *paths]
        with self._git.slots.one():
            await self._git.succeed(job, arguments)
            return await self._place(job)

    async def _commit(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _commit)
        message = body.message or ""
        if not message.strip() or "\0" in message:
            raise invalid("message", "say what the commit does, without NUL")
        if len(message.encode()) > _LONGEST_MESSAGE:
            raise invalid("message", f"a message is at most {_LONGEST_MESSAGE} bytes long")
        paths = checked_paths(body.paths)
        job = _about(await self._surroundings.job(body, request), path=paths[0] if paths else None)
        if body.author is not None:
            author = {"name": body.author.name, "email": body.author.email}
            if any(set(value) & set("\0\n<>") for value in author.values()):
                raise invalid("author", "a name and an email hold no line's end, NUL, < or >")
            job = replace(job, environ=with_author(job.environ, author))
        arguments = [_LITERAL, "commit", f"--message={message}", "--no-edit"]
        if body.all:
            arguments.append("--all")
        if body.allow_empty:
            arguments.append("--allow-empty")
        with self._git.slots.one():
            found = await self._git.run(job, [*arguments, "--", *paths])
            said = text(found.stdout)
            if found.exit_code == 1 and (why := _nothing(said)):
                return reply(CommitReply(committed=False, summary=why))
            if found.exit_code != 0:
                raise _commit_failure(job, failure(job, found))
            answer = CommitReply(committed=True, summary=outcome(found.stdout))
            answer.commit = await head(self._git, job) or UNSET
            answer.branch = await current_branch(self._git, job) or UNSET
            return reply(answer)

    async def _branches(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _branches)
        job = await self._surroundings.job(body, request)
        arguments = ["for-each-ref", BRANCH_FORMAT, f"--count={MOST_BRANCHES + 1}"]
        arguments += ["--sort=-committerdate", "refs/heads", *(["refs/remotes"] if body.remotes else [])]
        with self._git.slots.one(), self._held(_LISTING):
            output = await self._git.succeed(job, arguments, limit=_LISTING)
            found = branches(output.stdout)
        truncated = output.cut or len(found) > MOST_BRANCHES
        return reply(BranchesReply(branches=found[:MOST_BRANCHES], truncated=truncated))

    async def _branch(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _branch)
        name = checked_name(body.branch, field="branch", needed=True) or ""
        start = checked_name(body.start, field="start")
        job = _about(await self._surroundings.job(body, request), branch=start or name)
        starts = [start] if start else []
        arguments = ["checkout", "-b", name, *starts, "--"] if body.switch else ["branch", name, *starts]
        with self._git.slots.one():
            await self._git.succeed(job, arguments)
            return await self._place(job)

    async def _switch(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _switch)
        branch = checked_name(body.branch, field="branch", needed=True) or ""
        job = _about(await self._surroundings.job(body, request), branch=branch)
        job = replace(
            job, operation="git.checkout", otherwise="GIT_CHECKOUT_FAILED", unmatched="GIT_BRANCH_NOT_FOUND"
        )
        # `git switch` would say more clearly what is meant, and is missing before git 2.23.
        with self._git.slots.one():
            await self._git.succeed(job, ["checkout", *(["--detach"] if body.detach else []), branch, "--"])
            return await self._place(job)

    async def _place(self, job: Job) -> StreamResponse:
        commit, branch = await head(self._git, job), await current_branch(self._git, job)
        return reply(PlaceReply(detached=branch is None, branch=branch or UNSET, commit=commit or UNSET))

    @contextmanager
    def _held(self, count: int) -> Generator[None]:
        if not self._memory.take(count):
            raise Fault(
                "RESOURCE_BUSY",
                f"the runtime has {self._memory.total >> 20} MiB for bodies and outputs, and they are in use",
                suggestion="send this again later, or with a smaller maxBytes",
            )
        try:
            yield
        finally:
            self._memory.give(count)


def _about(job: Job, **named: str | None) -> Job:
    """With what its errors name."""
    return replace(job, context=job.context | {name: value for name, value in named.items() if value})


def _nothing(said: str) -> str | None:
    lines = said.splitlines()
    return next((line for line in lines if line.startswith(_NOTHING)), None)


def _commit_failure(job: Job, fault: Fault) -> Fault:
    if not lacks_identity(str(fault.context.get("stderr", ""))):
        return fault
    found = invalid("author", "git does not know who commits")
    found.context |= fault.context
    found.operation = job.operation
    found.suggestion = "send author with name and email, or set user.name and user.email with git config"
    return found
