"""Whether the workspace has room left: on a full one builds fail in odd ways, and nothing can be saved."""

import asyncio
import os
import time
from collections.abc import Callable

import msgspec

from sandpod_runtime.disk import Disk

# A file system is full with less than a hundredth of it, or so much, whichever is more; a small one always
# has three quarters that can be used.
_PART = 100
_LEAST = 16 << 20
_MOST_OF_SMALL = 4
# To be ready again takes more, or a sandbox at the limit would be ready and not ready by turns.
_RELIEF = 2
# A kubelet gives a probe a second, and several ask at once.
_PATIENCE = 0.5
_FRESH_SECONDS = 1.0


class Space(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    total: int
    free: int
    full: bool


class Room:
    def __init__(self, *, disk: Disk, path: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        """`path` is None where nothing outlives a sleep: then the node watches over what is written."""
        self._disk = disk
        self._path = path
        self._clock = clock
        self._known: Space | None = None
        self._looked_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def look(self) -> Space | None:
        """What is known of it, at most a second old unless the file system does not answer."""
        if self._path is None:
            return None
        if self._known is None or self._clock() - self._looked_at >= _FRESH_SECONDS:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.get_running_loop().create_task(self._renew(self._path))
            # One that hangs keeps its thread; there is never a second.
            await asyncio.wait((self._looking,), timeout=_PATIENCE)
        return self._known

    async def _renew(self, path: str) -> None:
        try:
            found = await self._disk.run(os.statvfs, path)
        except OSError:
            return  # the user has removed it; there is nothing to judge
        was_full = self._known is not None and self._known.full
        self._known = judged(path, found, was_full=was_full)
        self._looked_at = self._clock()


def judged(path: str, found: os.statvfs_result, *, was_full: bool) -> Space:
    total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    least = min(max(total // _PART, _LEAST), total // _MOST_OF_SMALL)
    # Some file systems make inodes as they need them, and count none.
    no_inodes = found.f_files > 0 and found.f_favail == 0
    full = no_inodes or free < least * (_RELIEF if was_full else 1)
    return Space(path=path, total=total, free=free, full=full)
