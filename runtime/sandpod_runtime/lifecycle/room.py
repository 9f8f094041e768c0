"""Whether the workspace has room left, and can be written to at all: otherwise builds fail in odd ways, and
nothing can be saved.
"""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

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
    # For the user's commands
    writable: bool


class Room:
    def __init__(
        self,
        *,
        disk: Disk,
        path: str | None,
        user: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`path` is None where nothing outlives a sleep: then the node watches over what is written. `user`
        runs the commands; None: whoever runs this.
        """
        self._disk = disk
        self._path = path
        self._user = user
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
            writable = await self._disk.run(may_write, path, user=self._user)
        except OSError:
            return  # the user has removed it; there is nothing to judge
        was_full = self._known is not None and self._known.full
        self._known = judged(path, found, was_full=was_full, writable=writable)
        self._looked_at = self._clock()


def may_write(path: str, *, user: int | None) -> bool:
    """A volume whose driver does not give it to the pod's group stays root's."""
    if user is None or user == os.geteuid():
        return os.access(path, os.W_OK | os.X_OK)
    return opens_to(Path(path).stat(), user=user) and not os.statvfs(path).f_flag & os.ST_RDONLY


def opens_to(found: os.stat_result, *, user: int) -> bool:
    """Whether this user, whose group has the same number, can make files in the directory."""
    shift = 6 if found.st_uid == user else 3 if found.st_gid == user else 0
    return found.st_mode >> shift & 0o3 == 0o3


def judged(path: str, found: os.statvfs_result, *, was_full: bool, writable: bool = True) -> Space:
    total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    least = min(max(total // _PART, _LEAST), total // _MOST_OF_SMALL)
    # Some file systems make inodes as they need them, and count none.
    no_inodes = found.f_files > 0 and found.f_favail == 0
    full = no_inodes or free < least * (_RELIEF if was_full else 1)
    return Space(path=path, total=total, free=free, full=full, writable=writable)
