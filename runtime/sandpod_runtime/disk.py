"""Work on file systems, away from the event loop: a disk, a network share or a FIFO may take its time."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from sandpod_runtime.errors import Fault
from sandpod_runtime.paths import shown

# The runtime's own, found from here also by threads for which /proc is another one (strict/world.py).
OPEN_FILES = os.open("/proc/self/fd", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
_THREADS = 8
# Work without a bound of its own (a copy of a tree) leaves threads for what is quick.
_LONG_AT_ONCE = 4
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
    errno.EFBIG: "FILE_TOO_LARGE",
    # Nothing that is wrong with the file system: the request asks for what cannot be done.
    errno.EINVAL: "VALIDATION_FAILED",
    errno.ENXIO: "VALIDATION_FAILED",
}

P = ParamSpec("P")
T = TypeVar("T")


class LeftError(Exception):
    """Nobody waits any more for the work that raises this."""


class Disk:
    def __init__(self, enter: Callable[[], None] | None = None) -> None:
        """Each thread begins with `enter`."""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="disk", initializer=enter)
        self._long = asyncio.Semaphore(_LONG_AT_ONCE)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A caller that is cancelled leaves; what it began goes on to its end."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))

    async def made(self, make: Callable[[], T], *, discard: Callable[[T], None]) -> T:
        """For what has to be given back: `discard` gets it if the caller has left before it was there."""
        making = asyncio.get_running_loop().run_in_executor(self._threads, make)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(
                lambda done: None if done.exception() else self.later(lambda: discard(done.result()))
            )
            raise

    def later(self, work: Callable[[], None]) -> None:
        """For what nobody waits for."""
        self._threads.submit(work)

    async def run_long(self, work: Callable[[Callable[[], None]], T]) -> T:
        """For work that may last: few at a time, the others wait. `work` often calls what it is given, which
        ends it once the caller has been cancelled.
        """
        left = threading.Event()

        def check() -> None:
            if left.is_set():
                raise LeftError

        async with self._long:
            try:
                return await self.run(work, check)
            except asyncio.CancelledError:
                left.set()
                raise


@contextmanager
def told(path: str, operation: str) -> Generator[None]:
    """What the system says against this becomes what the client is told."""
    try:
        yield
    except ConnectionError:
        raise  # a client that has gone; no file says that
    except OSError as error:
        raise fault_of(error, path=path, operation=operation) from error


def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def fault_of(error: OSError, *, path: str, operation: str) -> Fault:
    """What went wrong with `path`, in the protocol's words."""
    number = error.errno or 0
    code = _CODES.get(number, "FILESYSTEM_ERROR")
    reason = "not found" if number == errno.ENOENT else error.strerror or os.strerror(number)
    # What is in the way may be another one than was asked for, such as a directory above it.
    # Of two names the second one is what was to be made.
    named = error.filename2 or error.filename
    named = named if isinstance(named, str) and named.startswith("/") else path
    context: dict[str, object] = {"path": shown(path), "operation": operation}
    if code == "VALIDATION_FAILED":
        context["validationErrors"] = [{"field": "path", "message": reason}]
    return Fault(code, f"{shown(named)}: {reason}", context=context, operation=operation)
