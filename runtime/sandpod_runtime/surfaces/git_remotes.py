"""What a repository exchanges with its remotes: fetch, pull, push."""

from dataclasses import replace

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET

from sandpod_runtime.errors import invalid
from sandpod_runtime.git.parsing import conflicts, outcome, push_updates, text
from sandpod_runtime.git.program import STALL, Git, Job, current_branch, failure, head
from sandpod_runtime.git.requests import TRANSFER_MS, Surroundings, checked_name, secret_of
from sandpod_runtime.git.urls import Masker
from sandpod_runtime.models.git import (
    FetchRequest,
    PlaceReply,
    PullReply,
    PullRequest,
    PushReply,
    PushRequest,
    RemoteRequest,
)
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import Bodies, Request, reply

_DEFAULT_REMOTE = "origin"
_MOST_UPDATES = 1000
_ERRORS = (
    "GIT_AUTH_FAILED",
    "GIT_REPOSITORY_NOT_FOUND",
    "GIT_BRANCH_NOT_FOUND",
    "GIT_NETWORK_ERROR",
    "GIT_OPERATION_FAILED",
    "COMMAND_NOT_FOUND",
    "FILE_NOT_FOUND",
    "NOT_DIRECTORY",
    "RESOURCE_BUSY",
)

_fetch = msgspec.json.Decoder(FetchRequest)
_pull = msgspec.json.Decoder(PullRequest)
_push = msgspec.json.Decoder(PushRequest)


class GitRemotes:
    def __init__(self, *, git: Git, surroundings: Surroundings, bodies: Bodies) -> None:
        self._git = git
        self._surroundings = surroundings
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            ("POST", "/api/git/fetch"): Endpoint(
                handler=self._fetch,
                tag="git",
                summary="Get a remote's commits, and change nothing else.",
                body=FetchRequest,
                reply=PlaceReply,
                errors=_ERRORS,
            ),
            ("POST", "/api/git/pull"): Endpoint(
                handler=self._pull,
                tag="git",
                summary="Get a remote's commits into the branch that is checked out.",
                body=PullRequest,
                reply=PullReply,
                errors=_ERRORS,
            ),
            ("POST", "/api/git/push"): Endpoint(
                handler=self._push,
                tag="git",
                summary="Send the commits of a branch to a remote.",
                body=PushRequest,
                reply=PushReply,
                errors=_ERRORS,
            ),
        }

    async def _fetch(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _fetch)
        branch = checked_name(body.branch, field="branch")
        with self._git.slots.one():
            job, remote = await self._job(body, request, branch=branch)
            arguments = [*STALL, "fetch", *(["--prune"] if body.prune else []), "--", remote]
            await self._git.succeed(job, [*arguments, *([branch] if branch else [])])
            commit, current = await head(self._git, job), await current_branch(self._git, job)
        return reply(PlaceReply(detached=current is None, branch=current or UNSET, commit=commit or UNSET))

    async def _pull(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _pull)
        branch = checked_name(body.branch, field="branch")
        with self._git.slots.one():
            job, remote = await self._job(body, request, branch=branch)
            before = await head(self._git, job)
            arguments = [*STALL, "pull"]
            if body.rebase is not None:
                arguments.append("--rebase" if body.rebase else "--no-rebase")
            # Without names git takes those of the branch's upstream.
            names = [remote, *([branch] if branch else [])] if body.remote or branch else []
            found = await self._git.run(job, [*arguments, "--", *names])
            if found.exit_code != 0:
                fault = failure(job, found)
                if torn := conflicts(found.stdout):
                    fault.message = "both sides changed the same lines"
                    fault.context["conflicts"] = torn
                    fault.suggestion = "resolve them, add and commit; git merge --abort takes the pull back"
                raise fault
            after, current = await head(self._git, job), await current_branch(self._git, job)
        return reply(
            PullReply(
                detached=current is None,
                branch=current or UNSET,
                commit=after or UNSET,
                updated=before != after,
                summary=job.mask(outcome(found.stdout)),
            )
        )

    async def _push(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _push)
        branch = checked_name(body.branch, field="branch")
        if branch and (":" in branch or branch.startswith("+")):
            raise invalid("branch", "give the name of a branch; it has the same name at the remote")
        with self._git.slots.one():
            job, remote = await self._job(body, request, branch=branch, push=True)
            arguments = [*STALL, "push", "--porcelain"]
            for wanted, option in (
                (body.set_upstream, "--set-upstream"),
                (body.force, "--force-with-lease"),
                (body.tags, "--tags"),
            ):
                if wanted:
                    arguments.append(option)
            found = await self._git.run(job, [*arguments, "--", remote, branch or "HEAD"])
            updates = push_updates(found.stdout)[:_MOST_UPDATES]
            if found.exit_code != 0:
                # Why a branch was refused stands among the updates.
                fault = failure(job, replace(found, stderr=found.stdout + found.stderr))
                fault.context["updates"] = [msgspec.to_builtins(update) for update in updates]
                raise fault
        return reply(PushReply(updates=updates))

    async def _job(
        self, body: RemoteRequest, request: Request, *, branch: str | None, push: bool = False
    ) -> tuple[Job, str]:
        remote = checked_name(body.remote, field="remote") or _DEFAULT_REMOTE
        job = await self._surroundings.job(body, request, timeout_ms=TRANSFER_MS)
        job = replace(job, remote=True, context=job.context | ({"branch": branch} if branch else {}))
        # A remote may be given by its address, as git takes it.
        url = remote if "/" in remote or ":" in remote else await self._url(job, remote, push=push)
        secret = secret_of(body, url=url)
        mask = Masker(url, secrets=(secret.password,) if secret else ())
        return replace(job, secret=secret, mask=mask), remote

    async def _url(self, job: Job, remote: str, *, push: bool) -> str:
        arguments = ["remote", "get-url", *(["--push"] if push else []), "--", remote]
        found = await self._git.succeed(job, arguments)
        return text(found.stdout).strip()
