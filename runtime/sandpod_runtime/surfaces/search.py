"""search: files by name (`/api/files/find`) and lines by content (`/api/files/grep`), in a process of its
own that can be killed.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.files.listing import tidied
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.search import (
    FindReply,
    FindRequest,
    FindSummary,
    FoundFile,
    GrepReply,
    GrepRequest,
    GrepSummary,
    Match,
)
from sandpod_runtime.paths import checked, resolved, shown
from sandpod_runtime.process.captured import Captured, captured
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import SpawnError
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.session.ids import named
from sandpod_runtime.wire import Bodies, Request, reply

MOST_AT_ONCE = 4
# What a worker may write is less; one that a command has tampered with may not fill the memory.
_MOST_OUTPUT = 8 << 20
# Linux takes 128 KiB as one argument.
_LARGEST_REQUEST = 100_000
# The worker stops by itself; it is killed when it does not come back from a regular expression.
_GRACE_SECONDS = 2.0
_KILLED = 137
_STDERR_SHOWN = 1000
_OPERATION = "file.search"
_ERRORS = (
    "FILE_NOT_FOUND",
    "NOT_DIRECTORY",
    "PERMISSION_DENIED",
    "NAME_TOO_LONG",
    "TOO_MANY_LINKS",
    "FILESYSTEM_ERROR",
    "RESOURCE_BUSY",
)
_find_decoder = msgspec.json.Decoder(FindRequest)
_grep_decoder = msgspec.json.Decoder(GrepRequest)

Result = TypeVar("Result")
Summary = TypeVar("Summary", bound=FindSummary)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome(Generic[Result, Summary]):
    results: list[Result]
    summary: Summary


class Search:
    def __init__(
        self, *, commands: Commands, disk: Disk, bodies: Bodies, directory: Callable[[str | None], str]
    ) -> None:
        """`directory` says where the relative paths of a session start."""
        self._commands = commands
        self._disk = disk
        self._bodies = bodies
        self._directory = directory
        self._slots = Slots("searches running", MOST_AT_ONCE)

    def routes(self) -> Routes:
        return {
            ("POST", "/api/files/find"): Endpoint(
                handler=self._find,
                tag="search",
                summary="Find files by their names.",
                body=FindRequest,
                reply=FindReply,
                errors=_ERRORS,
            ),
            ("POST", "/api/files/grep"): Endpoint(
                handler=self._grep,
                tag="search",
                summary="Find lines that match a regular expression or hold a text.",
                body=GrepRequest,
                reply=GrepReply,
                errors=_ERRORS,
            ),
        }

    async def _find(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _find_decoder)
        root = self._root(body)
        outcome = await self._run("find", body, root=root, result=FoundFile, summary=FindSummary)
        return reply(
            FindReply(
                path=body.path,
                files=outcome.results,
                count=len(outcome.results),
                truncated=outcome.summary.truncated,
                unreadable=outcome.summary.unreadable,
            )
        )

    async def _grep(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _grep_decoder)
        root = self._root(body)
        outcome = await self._run("grep", body, root=root, result=Match, summary=GrepSummary)
        summary = outcome.summary
        return reply(
            GrepReply(
                path=body.path,
                matches=outcome.results,
                count=len(outcome.results),
                files_matched=max(
                    summary.files_matched, len({each.absolute_path for each in outcome.results})
                ),
                files_searched=summary.files_searched,
                binary_skipped=summary.binary_skipped,
                large_skipped=summary.large_skipped,
                unreadable=summary.unreadable,
                truncated=summary.truncated,
            )
        )

    def _root(self, body: FindRequest | GrepRequest) -> str:
        return tidied(resolved(checked(body.path), base=self._directory(named(body.session_id))))

    async def _run(
        self,
        kind: str,
        body: FindRequest | GrepRequest,
        *,
        root: str,
        result: type[Result],
        summary: type[Summary],
    ) -> Outcome[Result, Summary]:
        # Only here: a cold start does without what reads patterns.
        from sandpod_runtime.search.excludes import problem_of

        for pattern in body.exclude:
            if problem := problem_of(pattern):
                raise invalid("exclude", problem, code="INVALID_PATTERN")
        # Not msgspec's JSON: what is not UTF-8 in the root travels as escapes of surrogates.
        argument = json.dumps(msgspec.to_builtins(body) | {"kind": kind, "root": root})
        if len(argument) > _LARGEST_REQUEST:
            raise invalid("body", f"a search is described in at most {_LARGEST_REQUEST} bytes")
        done = await self._captured(argument, timeout=body.timeout_ms / 1000 + _GRACE_SECONDS)
        outcome = await self._disk.run(_understood, done, result, summary)
        if isinstance(outcome, Outcome):
            return outcome
        raise _failed(outcome, done, path=root)

    async def _captured(self, argument: str, *, timeout: float) -> Captured:
        from sandpod_runtime.search.start import program

        self._slots.take()
        try:
            return await captured(
                self._commands,
                program(argument),
                timeout=timeout,
                limit=_MOST_OUTPUT,
                on_end=self._slots.give,
            )
        except SpawnError as error:
            self._slots.give()
            raise Fault("FILESYSTEM_ERROR", f"the search cannot be started: {error}") from error
        except Fault:
            self._slots.give()
            raise


def _understood(
    done: Captured, result: type[Result], summary: type[Summary]
) -> "Outcome[Result, Summary] | dict[str, Any]":
    """What the worker wrote, line by line; when it was killed, the last line is missing or cut."""
    *lines, _ = done.stdout.split(b"\n")
    decoder = msgspec.json.Decoder(result)
    results: list[Result] = []
    try:
        if done.timed_out or done.exit_code == _KILLED:
            # By us, or by the kernel when the memory ran out.
            results = [decoder.decode(line) for line in lines]
            return Outcome(
                results=results, summary=summary(truncated=["time" if done.timed_out else "memory"])
            )
        results = [decoder.decode(line) for line in lines[:-1]]
        last = msgspec.json.decode(lines[-1])
        if "truncated" not in last:
            return last
        return Outcome(results=results, summary=msgspec.convert(last, summary))
    except (msgspec.DecodeError, IndexError, TypeError):
        # The worker runs as the user, whose commands can do to it what they like.
        return {"broken": True}


def _failed(last: dict[str, Any], done: Captured, *, path: str) -> Fault:
    if "problem" in last:
        return invalid("pattern", f"this cannot be searched for: {last['problem']}", code="INVALID_PATTERN")
    number = last.get("errno")
    if isinstance(number, int):
        return fault_of(OSError(number, os.strerror(number)), path=path, operation=_OPERATION)
    said = done.stderr.decode("utf-8", "replace")[-_STDERR_SHOWN:]
    return Fault(
        "FILESYSTEM_ERROR",
        "the search ended without an answer",
        context={"path": shown(path), "operation": _OPERATION, "stderr": said, "exitCode": done.exit_code},
        operation=_OPERATION,
    )
