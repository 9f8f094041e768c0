"""What tells about the runtime: greeting, ping, version, and the programs that the image has."""

import asyncio
import os
import time
from collections.abc import Mapping

from aiohttp.web_response import StreamResponse

from sandpod_runtime import __version__
from sandpod_runtime.environment import Environment
from sandpod_runtime.gate import GREETING
from sandpod_runtime.models.basics import CommandsReply, PingReply, VersionReply
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import Request, reply, text_reply

# What a client library may ask to be told; without it, our own version is the truth.
CONFIGURED_VERSION = "SANDBOX_VERSION"


class Basics:
    def __init__(self, *, environment: Environment, begun: float) -> None:
        """`begun` is when the runtime was, by the monotonic clock."""
        self._environment = environment
        self._begun = begun

    def routes(self) -> Routes:
        return {
            GREETING: Endpoint(
                handler=self._greet,
                tag="runtime",
                summary="A greeting. Needs no credential; for probes.",
                media="text/plain; charset=utf-8",
                is_activity=False,
            ),
            ("GET", "/api/ping"): Endpoint(
                handler=self._ping,
                tag="runtime",
                summary="Whether the runtime is well.",
                reply=PingReply,
                is_activity=False,
            ),
            ("GET", "/api/version"): Endpoint(
                handler=self._version,
                tag="runtime",
                summary="The version that clients are told, and the runtime's own.",
                reply=VersionReply,
                is_activity=False,
            ),
            ("GET", "/api/commands"): Endpoint(
                handler=self._commands,
                tag="runtime",
                summary="The programs on the image's PATH.",
                reply=CommandsReply,
            ),
        }

    async def _greet(self, _: Request) -> StreamResponse:
        return text_reply("This is a Sandpod sandbox.\n")

    async def _ping(self, _: Request) -> StreamResponse:
        uptime = round(time.monotonic() - self._begun, 3)
        return reply(PingReply(status="healthy", message="healthy", uptime=uptime))

    async def _version(self, _: Request) -> StreamResponse:
        version = self._environment.variables.get(CONFIGURED_VERSION) or __version__
        return reply(VersionReply(version=version, runtime_version=__version__))

    async def _commands(self, _: Request) -> StreamResponse:
        # Looking at some thousand files takes longer than other requests should wait.
        found = await asyncio.to_thread(programs, self._environment.variables)
        return reply(CommandsReply(available_commands=found, count=len(found)))


def programs(environ: Mapping[str, str]) -> list[str]:
    """The names that a shell would find on PATH."""
    found: set[str] = set()
    for directory in environ.get("PATH", "").split(":"):
        if not directory.startswith("/"):
            continue  # relative to a directory that only a command has
        try:
            with os.scandir(directory) as entries:
                found.update(
                    entry.name for entry in entries if entry.is_file() and os.access(entry.path, os.X_OK)
                )
        except OSError:
            continue
    return sorted(name for name in found if name.isprintable())
