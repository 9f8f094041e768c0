"""Where the runtime keeps what shall be there after a sleep: sessions, backups, changes of the environment.

A sandbox with a workspace has a hidden directory in it for that. Without one, a directory of our own holds it
for as long as the runtime lives.
"""

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path

DEFAULT = "/var/lib/sandpod"
# Whatever a program of the same user has put in a file's place.
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# The image may have a root file system that cannot be written.
_PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (what is made there is private and has a random name)
_RANDOM_BYTES = 8


class StateDirectory:
    def __init__(self, chosen: str | None = None, *, default: str = DEFAULT) -> None:
        """`chosen` is made when it is not there; `default` is used when it is there."""
        if chosen is None and Path(default).is_dir() and os.access(default, os.W_OK | os.X_OK):
            chosen = default
        self.persistent = chosen is not None
        # For those who go through the workspace and shall not show it.
        self.chosen = chosen
        self._root = None if chosen is None else Path(chosen)
        # Surfaces ask from the threads that do their work on the disk.
        self._lock = threading.Lock()

    def path(self, name: str) -> str:
        """The private directory of this name, made when it is not there. Raises OSError."""
        with self._lock:
            if self._root is None:
                self._root = _fresh()
            elif self.persistent:
                # Every time: what runs in the sandbox may have removed it with all that is beside it.
                self._root.parent.mkdir(parents=True, exist_ok=True)
                _make_private(self._root)
                _hide_from_git(self._root)
            else:
                # A cleaner of /tmp may have removed it, and somebody else may have made another one.
                _make_private(self._root, must_be_ours=True)
            found = self._root / name
            _make_private(found)
            return str(found)

    def existing(self, name: str) -> str | None:
        """The directory of this name, if it is there. For reading: a workspace in which nothing was saved yet
        stays empty, and somebody can clone a repository into it. Raises OSError.
        """
        if self._root is None:
            return None
        for place in (self._root, self._root / name):
            try:
                mode = place.lstat().st_mode
            except FileNotFoundError:
                return None
            if not stat.S_ISDIR(mode):
                raise NotADirectoryError(errno.ENOTDIR, "this is not a directory", str(place))
        return str(self._root / name)

    def below(self, directory: str) -> str | None:
        """Its path from there, when it lies there; a link to a directory is that directory."""
        if self.chosen is None:
            return None
        found, above = os.path.realpath(self.chosen), os.path.realpath(directory).rstrip("/") + "/"
        return found.removeprefix(above) if found.startswith(above) else None

    def dispose(self) -> None:
        """Remove what is of no use to a later runtime."""
        if not self.persistent and self._root is not None:
            import shutil  # only here, at the end: a cold start does without

            shutil.rmtree(self._root, ignore_errors=True)


def write_whole(path: str, data: bytes) -> None:
    """The file is as it was, or it holds all of this. Raises OSError."""
    fresh = f"{path}.new"
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFELY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(fresh).replace(path)
    except OSError:
        # On a full disk half a file would take what room is left.
        with contextlib.suppress(OSError):
            Path(fresh).unlink()
        raise


def read_whole(path: str, *, largest: int) -> bytes:
    """Raises OSError, also for what is no file or larger."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _SAFELY)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "this is not a file", path)
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest} bytes", path)
    return data


def _fresh() -> Path:
    trouble = OSError("there is no place for the state directory")
    for place in _PLACES:
        root = Path(place, f"sandpod-{os.urandom(_RANDOM_BYTES).hex()}")
        try:
            root.mkdir(mode=0o700)
        except OSError as error:
            trouble = error
        else:
            return root
    raise trouble


def _hide_from_git(root: Path) -> None:
    """A workspace is often a repository, and `git add .` is not to take the sessions along."""
    place = root / ".gitignore"
    if not place.is_symlink() and not place.exists():
        with contextlib.suppress(OSError):
            write_whole(str(place), b"*\n")


def _make_private(path: Path, *, must_be_ours: bool = False) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        found = path.lstat()
        # A link would make us write wherever somebody else wants.
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "this is not a directory", str(path)) from None
        ours = found.st_uid == os.geteuid()
        if must_be_ours and not ours:
            raise PermissionError(errno.EACCES, "this directory is somebody else's", str(path)) from None
        if ours and stat.S_IMODE(found.st_mode) & 0o077:
            # Kubernetes opens what is on a volume to the pod's group when it mounts it.
            path.chmod(0o700)
