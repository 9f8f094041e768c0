"""An archive file back into its directory, which then holds what the archive holds and nothing else.

It is unpacked beside what is there, inside the directory: only there it is in the same file system, and a
mount point or a working directory stays what it is. Then old and new change places by renames; a failure
puts everything back.
"""

import errno
import os
import stat
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress

from sandpod_runtime.archive.extract import extracted
from sandpod_runtime.archive.inflow import GZIP, Limits
from sandpod_runtime.archive.member import BadArchiveError
from sandpod_runtime.archive.unpack import Tally
from sandpod_runtime.files.removing import remove
from sandpod_runtime.search.walk import DEEPEST, walk

_PIECE = 262_144
# The archive is one's own: only the room on the disk bounds it.
_LIMITS = Limits(total=1 << 60, file=1 << 60, entries=1 << 40, ratio=1 << 40, depth=DEEPEST + 1)


class IncompleteError(Exception):
    """Not everything in the archive could be unpacked; the message says what."""


def restored(directory: str, archive: str, *, keep: Collection[str]) -> Generator[int, None, None]:
    """In steps. `keep` are the names in `directory` that are not touched.

    Raises OSError, BadArchiveError or IncompleteError, and then has changed nothing.
    """
    descriptor = os.open(archive, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a file", archive)
        if os.pread(descriptor, len(GZIP), 0) != GZIP:
            raise BadArchiveError("this is not an archive that this runtime has made")
        os.makedirs(directory, exist_ok=True)  # noqa: PTH103 (a Path would tidy it)
        with _staging(directory) as staging:
            yield from _unpacked(descriptor, f"{staging}/new")
            _swap(directory, staging, keep=keep)
    finally:
        os.close(descriptor)


def _unpacked(descriptor: int, path: str) -> Generator[int, None, None]:
    tally = Tally()
    owners = os.geteuid() == 0
    work = extracted(path, kind="tar.gz", limits=_LIMITS, tally=tally, all_links=True, owners=owners)
    try:
        next(work)
        while True:
            work.send(os.read(descriptor, _PIECE))
            yield tally.entries
    except StopIteration:
        pass
    finally:
        work.close()
    if tally.skipped_count:
        name, reason = tally.skipped[0]
        raise IncompleteError(f"{tally.skipped_count} entries cannot be restored: {name}: {reason}")


def _swap(directory: str, staging: str, *, keep: Collection[str]) -> None:
    old, new = f"{staging}/old", f"{staging}/new"
    os.mkdir(old, 0o700)  # noqa: PTH102
    kept = {*keep, staging.rpartition("/")[2]}
    done: list[tuple[str, str]] = []
    try:
        for source, target in ((directory, old), (new, directory)):
            for name in os.listdir(source):  # noqa: PTH208
                if name not in kept:
                    _move(f"{source}/{name}", f"{target}/{name}")
                    done.append((f"{source}/{name}", f"{target}/{name}"))
    except OSError:
        for source, target in reversed(done):
            with suppress(OSError):
                _move(target, source)
        raise


def _move(source: str, target: str) -> None:
    try:
        os.rename(source, target)  # noqa: PTH104
    except PermissionError:
        # A directory that changes its place must be writable, for it has the entry `..`.
        info = os.lstat(source)
        if not stat.S_ISDIR(info.st_mode) or info.st_mode & stat.S_IWUSR:
            raise
        os.chmod(source, stat.S_IMODE(info.st_mode) | stat.S_IWUSR)  # noqa: PTH101
        at = source
        try:
            os.rename(source, target)  # noqa: PTH104
            at = target
        finally:
            os.chmod(at, stat.S_IMODE(info.st_mode))  # noqa: PTH101


@contextmanager
def _staging(directory: str) -> Generator[str]:
    path = f"{directory}/.sandpod-restore-{os.urandom(6).hex()}"
    os.mkdir(path, 0o700)  # noqa: PTH102
    try:
        yield path
    finally:
        _remove(path)


def _remove(path: str) -> None:
    for found in walk(path, rules=(), failed=lambda name, reason: None):
        if found is not None and found.is_directory:
            # What is in a directory can be removed only when the directory is writable.
            with suppress(OSError):
                os.chmod(found.entry.path, 0o700)  # noqa: PTH101
    with suppress(OSError):
        remove(path, check=lambda: None)
