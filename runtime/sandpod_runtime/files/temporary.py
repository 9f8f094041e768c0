"""A file that has no name before it is finished: whatever kills the runtime, nothing of it is left.

Where the file system cannot do that, it has a hidden name until then.
"""

import contextlib
import os
import secrets
from collections.abc import Sequence

from sandpod_runtime.disk import OPEN_FILES

PREFIX = ".sandpod-"
# The kernel takes 1024.
_PARTS_AT_ONCE = 512
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
_UNNAMED = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC


def hidden_name() -> str:
    return PREFIX + secrets.token_hex(8)


class Temporary:
    def __init__(self, directory: str, *, private: bool, unnamed: bool = True) -> None:
        """`private`: nobody else may read it until it has its final rights."""
        self._directory = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._name: str | None = None
        try:
            self.file = self._open(0o600 if private else 0o666, unnamed=unnamed)
        except BaseException:
            os.close(self._directory)
            raise

    def _open(self, mode: int, *, unnamed: bool) -> int:
        if unnamed:
            # NFS, 9p and gVisor cannot do this, each with an error of its own.
            with contextlib.suppress(OSError):
                return os.open(".", _UNNAMED, mode, dir_fd=self._directory)
        name = hidden_name()
        file = os.open(name, _NEW, mode, dir_fd=self._directory)
        self._name = name
        return file

    def publish(self, name: str, *, overwrite: bool) -> None:
        """All of it is there at once, under this name in its directory."""
        here = self._directory
        if self._name is None:
            hidden = hidden_name() if overwrite else name
            # Given a directory's descriptor, Python asks the kernel to follow the link in /proc.
            os.link(str(self.file), hidden, src_dir_fd=OPEN_FILES, dst_dir_fd=here, follow_symlinks=True)
            if not overwrite:
                return
            self._name = hidden
        put_in_place(self._name, name, overwrite=overwrite, directory=here)
        self._name = None

    def close(self) -> None:
        """Without having been published it is gone."""
        if self._name is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._directory)
        os.close(self.file)
        os.close(self._directory)


def put_in_place(hidden: str, name: str, *, overwrite: bool, directory: int | None = None) -> None:
    """Gives a hidden file its name. To watchers a second name is a new file, a rename an old one's change."""
    if overwrite:
        os.rename(hidden, name, src_dir_fd=directory, dst_dir_fd=directory)
    else:
        os.link(hidden, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        os.unlink(hidden, dir_fd=directory)


def write_all(file: int, parts: Sequence[bytes]) -> int:
    """At the file's position. A write may be a partial one, and then the next says why."""
    total = 0
    for start in range(0, len(parts), _PARTS_AT_ONCE):
        some = parts[start : start + _PARTS_AT_ONCE]
        size = sum(len(part) for part in some)
        written = os.writev(file, some)
        if written < size:
            rest = memoryview(b"".join(some))
            while written < size:
                written += os.write(file, rest[written:])
        total += size
    return total
