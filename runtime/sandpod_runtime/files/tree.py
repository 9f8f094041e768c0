"""Small changes of a tree: a directory, a link, a file the less."""

import errno
import os
import stat
from collections.abc import Callable

from sandpod_runtime.files.removing import remove


def make_directory(path: str, *, recursive: bool, mode: int | None) -> None:
    if recursive:
        try:
            os.makedirs(path, exist_ok=True)
        except FileExistsError as error:
            if error.filename != path:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from error
            raise
    else:
        os.mkdir(path)
    if mode is not None:
        os.chmod(path, mode)


def delete(path: str, *, recursive: bool, check: Callable[[], None]) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    if not recursive:
        raise IsADirectoryError(
            errno.EISDIR, "Cannot delete directory with deleteFile(); say recursive: true", path
        )
    if path.rstrip("/").rpartition("/")[2] in (".", ".."):
        # The kernel would say so only at the end, of a directory that is empty by then.
        raise OSError(errno.EINVAL, "a directory is deleted by its name, not as . or ..", path)
    if os.path.samestat(os.stat(path), os.stat("/")):
        raise OSError(errno.EINVAL, "the root directory cannot be deleted", path)
    remove(path, check=check)
