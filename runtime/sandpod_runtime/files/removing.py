"""Removes trees: of any depth, with one descriptor, never through a link that somebody puts in the way."""

import errno
import os
from collections.abc import Callable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_Identity = tuple[int, int]


def remove(path: str, *, check: Callable[[], None]) -> None:
    """Like `rm -r`. shutil's needs a descriptor and a frame of the interpreter for each level."""
    try:
        here = os.open(path, _DIRECTORY)
    except OSError as error:
        # ELOOP and ENOTDIR: a link, or no directory.
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        os.unlink(path)
        return
    try:
        above: list[tuple[str, _Identity]] = []
        while True:
            if (name := _first_directory(here, check=check)) is not None:
                above.append((name, _identity(here)))
                here = _moved(here, name)
            elif above:
                name, expected = above.pop()
                here = _moved(here, "..")
                if _identity(here) != expected:
                    raise OSError(errno.EBUSY, "this was moved while it was removed", path)
                os.rmdir(name, dir_fd=here)
            else:
                break
    finally:
        os.close(here)
    os.rmdir(path)


def _first_directory(here: int, *, check: Callable[[], None]) -> str | None:
    """Removes everything that comes before it."""
    with os.scandir(here) as entries:
        for entry in entries:
            check()
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            os.unlink(entry.name, dir_fd=here)
    return None


def _moved(here: int, name: str) -> int:
    there = os.open(name, _DIRECTORY, dir_fd=here)
    os.close(here)
    return there


def _identity(directory: int) -> _Identity:
    found = os.fstat(directory)
    return found.st_dev, found.st_ino
