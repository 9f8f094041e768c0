"""Work on file systems, away from the event loop: a disk, a network share or a FIFO may take its time."""

import asyncio
import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from sandpod_runtime.errors import Fault
from sandpod_runtime.paths import shown

_THREADS = 8
_CODES = {
    errno.ENOENT: "FILE_NOT_FOUND",
    errno.EACCES: "PERMISSION_DENIED",
    errno.EPERM: "PERMISSION_DENIED",
    errno.ENOSPC: "NO_SPACE",
    errno.EDQUOT: "NO_SPACE",
    errno.EROFS: "READ_ONLY",
    errno.EISDIR: "IS_DIRECTORY",
    errno.ENOTDIR: "NOT_DIRECTORY",
    errno.ENAMETOOLONG: "NAME_TOO_LONG",
    errno.EEXIST: "FILE_EXISTS",
    errno.ENOTEMPTY: "FILE_EXISTS",
    errno.EBUSY: "RESOURCE_BUSY",
    errno.ETXTBSY: "RESOURCE_BUSY",
    errno.EMFILE: "TOO_MANY_FILES",
    errno.ENFILE: "TOO_MANY_FILES",
    errno.EMLINK: "TOO_MANY_LINKS",
    errno.ELOOP: "TOO_MANY_LINKS",
}

P = ParamSpec("P")
T = TypeVar("T")


class Disk:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="disk")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A caller that is cancelled leaves; what it began goes on to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))


def fault_of(error: OSError, *, path: str, operation: str) -> Fault:
    """What went wrong with `path`, in the protocol's words."""
    reason = os.strerror(error.errno or 0)
    if error.errno == errno.ENOENT:
        reason = "not found"
    return Fault(
        _CODES.get(error.errno or 0, "FILESYSTEM_ERROR"),
        f"{shown(path)}: {reason}",
        context={"path": shown(path), "operation": operation},
        operation=operation,
    )
