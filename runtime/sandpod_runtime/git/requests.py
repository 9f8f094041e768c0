"""From what a client sends to a run of git, or to the error that says what is wrong with it."""

import os
import stat
from collections.abc import Callable, Mapping

from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.environment import Environ, Environment, merged
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.git.clone import Order
from sandpod_runtime.git.program import Job, Secret
from sandpod_runtime.git.urls import Masker, clone_name, has_password, name_problem, origin, problem
from sandpod_runtime.models.common import LONGEST_MS
from sandpod_runtime.models.git import CheckoutRequest, Credentials, Place, RemoteRequest
from sandpod_runtime.paths import checked, resolved, shown
from sandpod_runtime.session.ids import named_or_hinted
from sandpod_runtime.wire import Request

TRANSFER_MS = 600_000
LOCAL_MS = 120_000
_LONGEST_PATHS = 128 << 10
# GitHub, GitLab and their like take any name beside a token.
_TOKEN_USER = "x-access-token"  # noqa: S105 (a name, not a token)


class Surroundings:
    """Where and in which environment a request runs git: those of its session, for which it does not wait."""

    def __init__(
        self,
        *,
        environment: Environment,
        disk: Disk,
        directory: Callable[[str | None], str],
        exported: Callable[[str], Environ | None],
    ) -> None:
        self._environment = environment
        self._disk = disk
        self.directory = directory
        self._exported = exported

    def environ(self, session: str | None) -> Environ:
        return (self._exported(session) if session else None) or self._environment.variables

    async def job(
        self, body: Place | RemoteRequest, request: Request, *, timeout_ms: float = LOCAL_MS
    ) -> Job:
        """For a request about a repository that is there."""
        session = named_or_hinted(body.session_id, request)
        place = self.directory(session)
        if body.cwd:
            place = resolved(checked(body.cwd, field="cwd"), base=place)
        try:
            found = await self._disk.run(os.stat, place)
        except OSError as error:
            raise fault_of(error, path=place, operation="git.operation") from error
        if not stat.S_ISDIR(found.st_mode):
            raise Fault(
                "NOT_DIRECTORY",
                f"{shown(place)}: not a directory",
                context={"path": shown(place), "operation": "git.operation"},
            )
        return Job(
            directory=place,
            environ=self.environ(session),
            timeout=(body.timeout_ms or timeout_ms) / 1000,
            context={"repository": shown(place)},
        )

    def order(self, body: CheckoutRequest, request: Request) -> Order:
        """For a clone."""
        url = (body.repo_url or "").strip()
        if trouble := problem(url):
            raise Fault(
                "INVALID_GIT_URL",
                f"repoUrl: {trouble}",
                context={"validationErrors": [{"field": "repoUrl", "message": trouble}]},
                operation="git.clone",
            )
        branch = checked_name(body.branch, field="branch")
        secret = secret_of(body, url=url)
        session = named_or_hinted(body.session_id, request)
        base = self.directory(session)
        target = body.target_dir or resolved(clone_name(url), base=self._environment.directory())
        mask = Masker(url, secrets=(secret.password,) if secret else ())
        context: dict[str, object] = {"repository": mask(url), "targetDir": mask(shown(target))}
        if branch:
            context["branch"] = branch
        return Order(
            url=url,
            target=resolved(checked(target, field="targetDir"), base=base),
            shown_target=target,
            branch=branch,
            depth=body.depth,
            partial=secret is None if body.partial is None else body.partial,
            job=Job(
                directory=base,
                environ=self.environ(session),
                timeout=_clone_timeout(body.timeout_ms) / 1000,
                context=context,
                operation="git.clone",
                otherwise="GIT_CLONE_FAILED",
                remote=True,
                secret=secret,
                mask=mask,
            ),
        )


def checked_name(name: str | None, *, field: str, needed: bool = False) -> str | None:
    """A branch, tag, commit or remote; an empty one counts as not given."""
    if not name:
        if needed:
            raise invalid(field, "give a name")
        return None
    if trouble := name_problem(name):
        raise invalid(field, trouble)
    return name


def checked_paths(paths: list[str]) -> list[str]:
    if sum(len(os.fsencode(path)) + 1 for path in paths) > _LONGEST_PATHS:
        # They are arguments of git's, and Linux has a bound on all of them.
        raise invalid("paths", f"all paths together are at most {_LONGEST_PATHS >> 10} KiB long")
    return [checked(path, field=f"paths[{number}]") for number, path in enumerate(paths)]


def secret_of(given: Credentials, *, url: str) -> Secret | None:
    """What is sent to the repository's own host; messages never repeat any of it."""
    if given.username is None and given.password is None and given.token is None:
        return None
    field = "token" if given.token is not None else "password"
    if given.password is not None and given.token is not None:
        raise invalid(field, "give a password or a token, not both")
    password = given.token if given.password is None else given.password
    if not password:
        raise invalid(field, "with a user name comes a password or a token")
    username = given.username or (_TOKEN_USER if given.token else "")
    if not username:
        raise invalid("username", "with a password comes a user name")
    for name, value in (("username", username), (field, password)):
        if any(ord(character) < 32 or ord(character) == 127 for character in value):
            raise invalid(name, "this cannot hold control characters")
    if has_password(url):
        raise invalid(field, "the address has a password already")
    place = origin(url)
    if place is None:
        raise invalid(field, "credentials are for addresses that begin with https:// or http://")
    return Secret(username=username, password=password, origin=place)


def with_author(environ: Environ, author: Mapping[str, str]) -> Environ:
    return merged(
        environ,
        {
            f"GIT_{role}_{part.upper()}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in author.items()
        },
    )


def _clone_timeout(given: float | None) -> float:
    if given is None:
        return TRANSFER_MS
    if not 0 < given <= LONGEST_MS or given != int(given):
        raise invalid(
            "timeoutMs", f"Invalid clone timeout: {given:g}; give a whole number of milliseconds above 0"
        )
    return given
