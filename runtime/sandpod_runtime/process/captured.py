"""A program of our own choosing, run to its end, with what it wrote: for git, search and the like."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import Program


@dataclass(frozen=True, kw_only=True, slots=True)
class Captured:
    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    # More was written than was kept.
    cut: bool


class _Head:
    """The first bytes of a stream. It never holds the program back, which would not end."""

    def __init__(self, limit: int, tell: Callable[[bytes], None] | None) -> None:
        self.kept = bytearray()
        self.cut = False
        self._limit = limit
        self._tell = tell

    def write(self, data: bytes) -> bool:
        room = self._limit - len(self.kept)
        self.kept += data[:room]
        self.cut |= len(data) > room
        if self._tell is not None:
            self._tell(data)
        return True


async def captured(
    commands: Commands,
    program: Program,
    *,
    timeout: float | None,
    limit: int,
    on_stderr: Callable[[bytes], None] | None = None,
    on_end: Callable[[], None] | None = None,
) -> Captured:
    """Keeps the first `limit` bytes of each stream. Raises Fault for too many commands, and SpawnError.

    The program ends with all that it started when the caller is cancelled; `on_end` is told when it has.
    """
    stdout, stderr = _Head(limit, None), _Head(limit, on_stderr)
    command = commands.start(
        program,
        stdin=None,
        stdin_done=lambda: None,
        stdout=stdout.write,
        stderr=stderr.write,
        timeout=timeout,
    )
    if on_end is not None:
        command.ended.add_done_callback(lambda _: on_end())
    try:
        ending = await command.ending()
    except asyncio.CancelledError:
        command.stop()
        raise
    return Captured(
        exit_code=ending.exit_code,
        stdout=bytes(stdout.kept),
        stderr=bytes(stderr.kept),
        timed_out=ending.timed_out,
        cut=stdout.cut or stderr.cut,
    )
