"""Which tools the image has, and their versions: asked once of each, few at a time, with little patience."""

import asyncio
import os
import re
import shutil
from dataclasses import dataclass

from sandpod_runtime.disk import Disk
from sandpod_runtime.environment import Environ
from sandpod_runtime.errors import Fault
from sandpod_runtime.process.captured import captured
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import Program, SpawnError

# With the arguments that make them tell their version. None of them needs a network for that.
_NAMES = """bash bun cargo clang cmake curl deno gcc git jq make node npm perl php pip3 python3 rg ruby rustc
    sqlite3 tmux uv vim"""
_ASKED = {
    **dict.fromkeys(_NAMES.split(), ("--version",)),
    "go": ("version",),
    "java": ("-version",),
}
_AT_ONCE = 2
_PATIENCE = 5.0
# All together: who asks for the first time waits no longer.
_ALL_PATIENCE = 20.0
_OUTPUT = 4096
_READ_FOR_VERSION = 1000
_VERSION = re.compile(r"(?<![\w.])(?:v|go)?(\d{1,9}(?:\.\d{1,9})+[\w.+~-]{0,40})")

# A program's path with what changes when it is replaced.
Identity = tuple[str, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    name: str
    path: str
    version: str | None


class Toolbox:
    def __init__(self, *, commands: Commands, disk: Disk) -> None:
        self._commands = commands
        self._disk = disk
        self._known: dict[Identity, str | None] = {}
        # Who comes second finds the answers of who came first.
        self._turn = asyncio.Lock()

    async def tools(self, environ: Environ, *, versions: bool) -> list[Tool]:
        found = await self._disk.run(_found, environ.get("PATH", ""))
        if versions:
            async with self._turn:
                await self._ask(
                    {name: tool for name, tool in found.items() if tool not in self._known}, environ
                )
        return [Tool(name=name, path=tool[0], version=self._known.get(tool)) for name, tool in found.items()]

    async def _ask(self, tools: dict[str, Identity], environ: Environ) -> None:
        few = asyncio.Semaphore(_AT_ONCE)

        async def ask(name: str, tool: Identity) -> None:
            async with few:
                self._known[tool] = await self._version(name, tool[0], environ)

        try:
            async with asyncio.timeout(_ALL_PATIENCE), asyncio.TaskGroup() as group:
                for name, tool in tools.items():
                    group.create_task(ask(name, tool))
        except TimeoutError:
            pass  # the others are asked the next time

    async def _version(self, name: str, path: str, environ: Environ) -> str | None:
        program = Program(
            path=path,
            arguments=[name, *_ASKED[name]],
            environ=environ | {"LC_ALL": "C", "NO_COLOR": "1"},
            directory="/",
        )
        try:
            said = await captured(self._commands, program, timeout=_PATIENCE, limit=_OUTPUT)
        except (Fault, SpawnError):
            return None
        if said.timed_out or said.exit_code != 0:
            return None
        return version((said.stdout + b"\n" + said.stderr).decode("utf-8", "replace"))


def version(said: str) -> str | None:
    """The first thing that looks like one, rather not in parentheses: there packagers put theirs."""
    said = said[:_READ_FOR_VERSION]
    found = _VERSION.search(re.sub(r"\s\([^)]*\)", "", said)) or _VERSION.search(said)
    return found[1].rstrip(".-+~,") if found else None


def _found(search: str) -> dict[str, Identity]:
    places = ":".join(place for place in search.split(":") if place.startswith("/"))
    found: dict[str, Identity] = {}
    for name in sorted(_ASKED):
        if path := shutil.which(name, path=places):
            try:
                about = os.stat(path)  # noqa: PTH116 (a Path for each is not needed)
            except OSError:
                continue
            found[name] = (path, about.st_mtime_ns, about.st_size)
    return found
