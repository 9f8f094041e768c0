"""A directory into an archive file: written under another name, and there at once when it is whole."""

import os
from collections.abc import Generator, Sequence
from contextlib import suppress

from sandpod_runtime.archive.pack import Summary, packed
from sandpod_runtime.disk import write_all
from sandpod_runtime.search.walk import Rules

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UnreadableError(Exception):
    """Something could not be read, and a restore would remove it; the message says what."""


def created(
    directory: str, archive: str, *, level: int, rules: Sequence[Rules], summary: Summary
) -> Generator[int, None, None]:
    """In steps, each of which gives the size so far. Raises OSError or UnreadableError."""
    if not os.path.isdir(directory):  # noqa: PTH112 (a Path would tidy it)
        raise NotADirectoryError(f"{directory} is not a directory")
    above, _, name = archive.rpartition("/")
    os.makedirs(above, mode=0o700, exist_ok=True)  # noqa: PTH103
    temporary = f"{above}/.sandpod-{os.urandom(6).hex()}"
    descriptor = os.open(temporary, _NEW, 0o600)
    try:
        size = 0
        for piece in packed(directory, kind="tar.gz", level=level, rules=rules, summary=summary):
            write_all(descriptor, piece)
            size += len(piece)
            yield size
        if summary.unreadable:
            raise UnreadableError(f"cannot read {summary.unreadable}")
        # The client may take it away at once, and believe that it has it.
        os.fsync(descriptor)
        os.rename(temporary, f"{above}/{name}")  # noqa: PTH104
    finally:
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
