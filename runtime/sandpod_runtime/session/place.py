"""Where the sessions' FIFOs lie: a private directory, on a tmpfs wherever there is one.

A runtime that is killed leaves its own behind; the next one removes what nobody holds any more.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

# The first is a tmpfs of the container's own, and nobody cleans it up.
_PLACES = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 (what is made there is private and has a random name)
# With a dot, for then `rm -rf /tmp/*` does not mean it. Short, for bash reads the whole path four times for
# each command, byte by byte.
_PREFIX = ".sandpod-io-"


class PrivatePlace:
    """A fresh directory that only we may look into and that can hold FIFOs. The lock on it tells other
    runtimes that it is in use.
    """

    def __init__(self, *, others: Iterable[str]) -> None:
        """Raises OSError."""
        trouble = OSError("there is no place for the sessions' FIFOs")
        for place in (*_PLACES, *others):
            _remove_deserted(place)
            self.path = f"{place}/{_PREFIX}{os.urandom(4).hex()}"
            try:
                Path(self.path).mkdir(mode=0o700)
            except OSError as error:
                trouble = error
                continue
            try:
                os.mkfifo(f"{self.path}/x")
                Path(self.path, "x").unlink()
                self._lock = _locked(self.path)
            except OSError as error:
                trouble = error
                shutil.rmtree(self.path, ignore_errors=True)
                continue
            return
        raise trouble

    @property
    def is_there(self) -> bool:
        """No command has removed it."""
        try:
            return Path(self.path).samefile(f"/proc/self/fd/{self._lock}")
        except OSError:
            return False

    def renew(self) -> None:
        """Where it was, for that is where living sessions make theirs again. Raises OSError."""
        Path(self.path).mkdir(mode=0o700, exist_ok=True)
        lock = _locked(self.path)
        os.close(self._lock)
        self._lock = lock

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_deserted(place: str) -> None:
    with contextlib.suppress(OSError):
        for path in [*Path(place).glob(f"{_PREFIX}*")]:
            # Whoever else looks here may be quicker.
            with contextlib.suppress(OSError):
                lock = _locked(str(path))
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(path: str) -> int:
    """Raises OSError, also when somebody else has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EACCES, "this directory is somebody else's", path)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
