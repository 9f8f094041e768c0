"""A stream of bytes into a directory, whatever the format."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from sandpod_runtime.archive.inflow import Inflow, Limits
from sandpod_runtime.archive.member import BadArchiveError, Reading
from sandpod_runtime.archive.target import Target
from sandpod_runtime.archive.unpack import Tally, Unpacking, unpack_tar
from sandpod_runtime.archive.zip_reader import MAGIC, unpack_zip
from sandpod_runtime.disk import write_all

_PIECE = 262_144


def extracted(
    path: str,
    *,
    kind: Literal["tar.gz", "tar", "zip"] | None,
    limits: Limits,
    tally: Tally,
    all_links: bool,
    owners: bool = False,
) -> Reading[None]:
    """Wants the archive in pieces and then b"" until it ends. Without `kind` the first bytes tell.

    Raises LimitError, BadArchiveError or OSError; what was unpacked before stays, and is in `tally`.
    """
    try:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 (a Path would tidy it)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", path) from error
    target = Target(path, all_links=all_links, owners=owners)
    try:
        unpacking = Unpacking(target=target, limits=limits, tally=tally)
        inflow = Inflow(limits)
        first = yield from inflow.begin()
        if not first:
            raise BadArchiveError("there is no archive: not a byte came")
        if kind == "zip" or (kind is None and first in MAGIC):
            with _spool(path) as spool:
                while piece := (yield from inflow.some(_PIECE)):
                    write_all(spool, piece)
                yield from unpack_zip(spool, unpacking)
        else:
            yield from unpack_tar(inflow, unpacking)
    finally:
        # Also after a failure: a directory shall not keep a mode that was only for us.
        target.finish()
        target.close()


@contextmanager
def _spool(path: str) -> Generator[int]:
    """A file without a name, in the file system that has the room for what will be unpacked."""
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_TMPFILE, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
        name = f"{path}/.sandpod-{os.urandom(6).hex()}"
        descriptor = os.open(name, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        os.unlink(name)  # noqa: PTH108
    try:
        yield descriptor
    finally:
        os.close(descriptor)
