"""Running the image's git for a client: in which environment, with which credentials, and what its failure
is called.
"""

import os
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as default

from sandpod_runtime.environment import Environ
from sandpod_runtime.errors import Context, Fault
from sandpod_runtime.git.failures import headline, meaning
from sandpod_runtime.git.parsing import text
from sandpod_runtime.git.urls import ALLOWED_PROTOCOLS, Masker
from sandpod_runtime.limits import Slots
from sandpod_runtime.paths import shown
from sandpod_runtime.process.captured import Captured, captured
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import SCRIPT_DESCRIPTOR, Program, SpawnError

MOST_AT_ONCE = 32
# What a small question of our own may take.
QUICK_SECONDS = 30.0
SMALL_OUTPUT = 1 << 20
_STDERR_SHOWN = 4096
_OURS = {
    # Its words are read by failures.py.
    "LC_ALL": "C",
    "LANGUAGE": "",
    # Nobody is there to answer.
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_PAGER": "",
    # A look at a repository must not fail a commit that somebody makes at the same moment.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": ALLOWED_PROTOCOLS,
}
# A transfer slower than this is dead: 1024 bytes per second, for half a minute.
STALL = ("-c", "http.lowSpeedLimit=1024", "-c", "http.lowSpeedTime=30")
# git asks a shell for credentials, and the shell reads them from an open file that has no name. They are in
# no argument, variable or file. git asks more than once in a partial clone, hence a file and not a pipe.
_HELPER = (
    '!f() { test "$1" = get && while IFS= read -r line; do printf "%s\\n" "$line"; done '
    f"</proc/self/fd/{SCRIPT_DESCRIPTOR}; }}; f"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Secret:
    username: str
    # Whatever is logged or raised with this object does not tell it.
    password: str = default(repr=False)
    # The only place that gets them, also when it redirects elsewhere.
    origin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run of git: for whom, where, how long, and what its failure tells."""

    directory: str
    environ: Environ
    timeout: float
    context: Context = default(default_factory=dict[str, object])
    operation: str = "git.operation"
    # The codes of what git does not explain, of a name that matches nothing, and of a name it does not take.
    otherwise: str = "GIT_OPERATION_FAILED"
    unmatched: str = "FILE_NOT_FOUND"
    field: str = "branch"
    remote: bool = False
    secret: Secret | None = None
    mask: Masker = default(default_factory=Masker)


class Git:
    def __init__(self, *, commands: Commands) -> None:
        self._commands = commands
        self.slots = Slots("git operations running", MOST_AT_ONCE)

    async def run(
        self,
        job: Job,
        arguments: Sequence[str],
        *,
        limit: int = SMALL_OUTPUT,
        on_stderr: Callable[[bytes], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> Captured:
        """Whatever git answers; raises Fault when it could not run or ran out of time."""
        with _descriptor(job.secret) as secret:
            program = Program(
                path=_found(job.environ),
                arguments=["git", *_with(job.secret), *arguments],
                environ=job.environ | _OURS,
                directory=job.directory,
                script=secret,
            )
            try:
                found = await captured(
                    self._commands,
                    program,
                    timeout=job.timeout,
                    limit=limit,
                    on_stderr=on_stderr,
                    on_end=on_end,
                )
            except SpawnError as error:
                raise Fault(
                    "GIT_OPERATION_FAILED", str(error), context=job.context, operation=job.operation
                ) from error
        if found.timed_out:
            raise Fault(
                "GIT_NETWORK_ERROR" if job.remote else "GIT_OPERATION_FAILED",
                f"git reached its timeout of {round(job.timeout * 1000)} ms",
                context=job.context,
                operation=job.operation,
                suggestion="give a larger timeoutMs",
            )
        return found

    async def succeed(
        self, job: Job, arguments: Sequence[str], *, limit: int = SMALL_OUTPUT, accepted: Sequence[int] = (0,)
    ) -> Captured:
        """The same, for what has to work."""
        found = await self.run(job, arguments, limit=limit)
        if found.exit_code not in accepted:
            raise failure(job, found)
        return found


def failure(job: Job, found: Captured) -> Fault:
    """git's own words for it, without secrets, under the protocol's code."""
    stderr = job.mask(text(found.stderr))
    meant = meaning(stderr, exit_code=found.exit_code, otherwise=job.otherwise, unmatched=job.unmatched)
    said = headline(stderr) or headline(job.mask(text(found.stdout))) or f"git ended with {found.exit_code}"
    context = job.context | {"stderr": stderr[-_STDERR_SHOWN:], "exitCode": found.exit_code}
    if meant.code == "VALIDATION_FAILED":
        context["validationErrors"] = [{"field": job.field, "message": said}]
    elif not meant.code.startswith("GIT_"):
        context = {"path": shown(job.directory), "operation": job.operation} | context
    return Fault(
        meant.code,
        said,
        context=context,
        operation=job.operation,
        suggestion=meant.suggestion,
    )


async def head(git: Git, job: Job) -> str | None:
    """The commit that is checked out; None in a repository that has none yet."""
    found = await git.run(job, ["rev-parse", "--quiet", "--verify", "HEAD"])
    if found.exit_code not in (0, 1):
        raise failure(job, found)
    return text(found.stdout).strip() or None


async def current_branch(git: Git, job: Job) -> str | None:
    """None when a commit is checked out by itself."""
    found = await git.run(job, ["symbolic-ref", "--quiet", "--short", "HEAD"])
    return text(found.stdout).strip() or None if found.exit_code == 0 else None


def _found(environ: Environ) -> str:
    # A relative place would be one in the repository, whose author would choose the program.
    search = ":".join(place for place in environ.get("PATH", "").split(":") if place.startswith("/"))
    if (path := shutil.which("git", path=search)) is None:
        raise Fault(
            "COMMAND_NOT_FOUND",
            "git was not found: this image has none on its PATH",
            context={"command": "git"},
            suggestion="install git in the image, or with its package manager",
        )
    return path


def _with(secret: Secret | None) -> list[str]:
    if secret is None:
        return []
    # The empty one forgets the user's own helpers, which would be told to store what works.
    return ["-c", "credential.helper=", "-c", f"credential.{secret.origin}.helper={_HELPER}"]


@contextmanager
def _descriptor(secret: Secret | None) -> Generator[int | None]:
    if secret is None:
        yield None
        return
    descriptor = os.memfd_create("credentials")
    try:
        lines = f"username={secret.username}\npassword={secret.password}\n".encode()
        os.write(descriptor, lines)
        yield descriptor
    finally:
        os.close(descriptor)
