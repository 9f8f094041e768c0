"""Names of users and groups, from the image's /etc/passwd and /etc/group.

The C library is not asked: it would load the image's own modules into this process.
"""

import os
import threading
from functools import partial

from sandpod_runtime.files.opening import open_file

_READ = 1 << 20


class Names:
    """One such file. It is read again when it has changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._names: dict[int, str] = {}

    def of(self, number: int) -> str:
        """The name, else the number, as `ls -l` shows it."""
        return self._names.get(number) or str(number)

    def refresh(self) -> None:
        with self._lock:
            try:
                found = os.stat(self._path)
                seen = (found.st_mtime_ns, found.st_size, found.st_ino)
                if seen == self._seen:
                    return
                file = open_file(self._path)
                try:
                    data = (
                        b"".join(iter(partial(os.read, file, _READ), b"")) if found.st_size <= _READ else b""
                    )
                finally:
                    os.close(file)
            except OSError:
                self._names = {}
                return
            self._names = parsed(data)
            self._seen = seen


def parsed(data: bytes) -> dict[int, str]:
    """The first name that a number has counts, as for the C library."""
    names: dict[int, str] = {}
    for line in data.split(b"\n"):
        fields = line.split(b":")
        if len(fields) >= 3 and fields[0] and fields[2].isdigit() and len(fields[2]) <= 10:
            names.setdefault(int(fields[2]), fields[0].decode("utf-8", "replace"))
    return names


users = Names("/etc/passwd")
groups = Names("/etc/group")
