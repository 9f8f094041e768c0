"""What is asked of backups, from the request to the reply."""

import logging
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.archive.member import BadArchiveError
from sandpod_runtime.archive.pack import Summary
from sandpod_runtime.archive.steps import EndedError, Steps
from sandpod_runtime.backup import terms
from sandpod_runtime.backup.create import UnreadableError, created
from sandpod_runtime.backup.restore import IncompleteError, restored
from sandpod_runtime.disk import Disk
from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.backup import (
    CreateBackupReply,
    CreateBackupRequest,
    RestoreBackupReply,
    RestoreBackupRequest,
    UploadPartsRequest,
)
from sandpod_runtime.process.captured import captured
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import Program, SpawnError
from sandpod_runtime.search.excludes import Excluded
from sandpod_runtime.search.gitignore import Ignored
from sandpod_runtime.search.walk import Paths, Rules
from sandpod_runtime.session.ids import named_or_hinted
from sandpod_runtime.state import StateDirectory
from sandpod_runtime.wire import Bodies, Request, reply

MOST_AT_ONCE = 2
_CREATE, _RESTORE = "backup.create", "backup.restore"
_GIT_SECONDS = 30.0
_GIT_OUTPUT = 8 << 20
_create_decoder = msgspec.json.Decoder(CreateBackupRequest)
_restore_decoder = msgspec.json.Decoder(RestoreBackupRequest)
_upload_decoder = msgspec.json.Decoder(UploadPartsRequest)

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Backups:
    def __init__(
        self,
        *,
        commands: Commands,
        environment: Environment,
        state: StateDirectory,
        disk: Disk,
        bodies: Bodies,
        workspace: str,
    ) -> None:
        self._commands = commands
        self._environment = environment
        self._state = state
        self._disk = disk
        self._bodies = bodies
        self._directories = (*terms.DIRECTORIES, workspace.rstrip("/"))
        self._slots = Slots("backups being made or restored", MOST_AT_ONCE)
        self._busy: set[str] = set()

    async def create(self, request: Request) -> StreamResponse:
        with _operation(_CREATE):
            body = await self._read(request, _create_decoder)
            named_or_hinted(body.session_id, request)
            level = terms.level(body.compression)
            lines = terms.exclude_lines(body.excludes or [])
            directory, archive = await self._places(body.dir, body.archive_path)
            with self._one(directory):
                rules = [*await self._rules(directory, archive), Excluded(lines)]
                if body.gitignore:
                    rules += await self._ignored(directory)
                summary = Summary()
                work = created(directory, archive, level=level, rules=rules, summary=summary)
                try:
                    size = await self._run(work)
                except (OSError, UnreadableError) as error:
                    _fail("BACKUP_CREATE_FAILED", error, directory=directory, archive=archive)
        logger.info("made a backup", extra={"entries": summary.entries, "sizeBytes": size})
        return reply(CreateBackupReply(size_bytes=size, archive_path=body.archive_path or ""))

    async def restore(self, request: Request) -> StreamResponse:
        with _operation(_RESTORE):
            body = await self._read(request, _restore_decoder)
            named_or_hinted(body.session_id, request)
            directory, archive = await self._places(body.dir, body.archive_path)
            with self._one(directory):
                inside = await self._disk.run(self._inside, directory, archive)
                keep = {name.partition("/")[0] for name in inside}
                try:
                    await self._run(restored(directory, archive, keep=keep))
                except (OSError, BadArchiveError, IncompleteError) as error:
                    _fail("BACKUP_RESTORE_FAILED", error, directory=directory, archive=archive)
        logger.info("restored a backup")
        return reply(RestoreBackupReply(dir=body.dir or ""))

    async def upload(self, request: Request) -> StreamResponse:
        with _operation(_CREATE):
            body = await self._read(request, _upload_decoder)
            named_or_hinted(body.session_id, request)
            terms.archive(body.archive_path, allowed=await self._archives())
            terms.check_parts(body.parts)
            raise Fault(
                "UNKNOWN_ERROR",
                "this runtime cannot upload by itself: it speaks no TLS",
                status=404,
                suggestion="read the archive, or run a command that uploads it",
            )

    async def _read(self, request: Request, decoder: "msgspec.json.Decoder[T]") -> T:
        try:
            return await self._bodies.read(request, decoder)
        except Fault as fault:
            problems: Any = fault.context.get("validationErrors")
            if problems and problems[0]["field"] != "body":
                raise terms.refusal(fault.message) from fault
            raise

    async def _places(self, directory: str | None, archive: str | None) -> tuple[str, str]:
        return (
            terms.directory(directory, allowed=self._directories),
            terms.archive(archive, allowed=await self._archives()),
        )

    async def _archives(self) -> list[str]:
        """Where archives may be: where the protocol has them, and where they outlive a sleep."""
        try:
            return [terms.ARCHIVES, await self._disk.run(self._state.path, "backups")]
        except OSError:
            return [terms.ARCHIVES]

    @contextmanager
    def _one(self, directory: str) -> Generator[None]:
        if directory in self._busy:
            raise Fault("RESOURCE_BUSY", f"{directory} is being backed up or restored just now")
        with self._slots.one():
            self._busy.add(directory)
            try:
                yield
            finally:
                self._busy.discard(directory)

    async def _run(self, work: Generator[int, None, None]) -> int:
        """What the last step gave."""
        steps = Steps(work, disk=self._disk)
        last = 0
        try:
            while True:
                last = await steps.next()
        except EndedError:
            return last
        finally:
            # The directory is not free before that.
            await steps.closed()

    async def _rules(self, directory: str, archive: str) -> list[Rules]:
        return [Paths(frozenset(await self._disk.run(self._inside, directory, archive)))]

    def _inside(self, directory: str, archive: str) -> list[str]:
        """What lies in the directory and is not of it: the runtime's own state, and the archive."""
        root = os.path.realpath(directory)
        ours = [os.path.realpath(archive)]
        with suppress(OSError):
            ours.append(os.path.realpath(self._state.path("backups")).rpartition("/")[0])
        prefix = root.rstrip("/") + "/"
        return [path.removeprefix(prefix) for path in ours if path.startswith(prefix)]

    async def _ignored(self, directory: str) -> list[Rules]:
        """What git ignores there: asked of git, which knows what it tracks all the same, else worked out."""
        rules = await self._disk.run(Ignored, directory, keep_git=True)
        if rules.repository is None:
            return []
        listed = await self._asked_of_git(directory)
        return [rules if listed is None else Paths(listed)]

    async def _asked_of_git(self, directory: str) -> frozenset[str] | None:
        environ = self._environment.variables
        git = await self._disk.run(shutil.which, "git", path=environ.get("PATH", ""))
        if git is None:
            return None
        words = ["git", "-C", directory, "ls-files", "-z", "--others", "--ignored"]
        program = Program(
            path=git,
            arguments=[*words, "--exclude-standard", "--directory"],
            environ=environ,
            directory="/",
        )
        try:
            done = await captured(self._commands, program, timeout=_GIT_SECONDS, limit=_GIT_OUTPUT)
        except (SpawnError, Fault):
            return None
        if done.exit_code or done.cut:
            return None
        return frozenset(os.fsdecode(name).rstrip("/") for name in done.stdout.split(b"\0") if name)


@contextmanager
def _operation(name: str) -> Generator[None]:
    try:
        yield
    except Fault as fault:
        fault.operation = name
        raise


def _fail(code: str, error: Exception, *, directory: str, archive: str) -> NoReturn:
    reason = str(error)
    if isinstance(error, OSError) and error.errno:
        where = str(error.filename or directory)
        above = archive.rpartition("/")[0]
        if where.startswith(f"{above}/.sandpod-"):
            where = above  # the name before it has its own is nobody's business
        reason = f"{where}: {os.strerror(error.errno)}"
    reason = os.fsencode(reason).decode("utf-8", "replace")
    suggestion = None
    if isinstance(error, PermissionError) and archive.startswith(f"{terms.ARCHIVES}/"):
        suggestion = f"mount a volume that the sandbox's user may write at {terms.ARCHIVES}"
    raise Fault(
        code,
        reason,
        context={"dir": directory, "backupId": terms.backup_id(archive), "stderr": reason},
        suggestion=suggestion,
    ) from error
