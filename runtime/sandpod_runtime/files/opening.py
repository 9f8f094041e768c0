"""Opens files so that nothing waits: what is no regular file is refused before it is touched, and so is the
runtime's own memory.
"""

import errno
import os
import stat

NULL = os.makedev(1, 3)
_SAFE = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}


def open_file(path: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file, or of /dev/null."""
    # Opening alone would wake the writer of a FIFO, rewind a tape, start a watchdog.
    require_file(os.stat(path), path)
    file = os.open(path, flags | _SAFE)
    try:
        found = os.fstat(file)
        require_file(found, path)
        _require_foreign(file, found, path)
    except BaseException:
        os.close(file)
        raise
    return file


def require_file(found: os.stat_result, path: str) -> None:
    if stat.S_ISREG(found.st_mode) or is_null(found):
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "this is a directory", path)
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
    raise OSError(errno.ENXIO, f"this is {kind}, not a regular file", path)


def is_null(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == NULL


def _require_foreign(file: int, found: os.stat_result, path: str) -> None:
    """Hostile code may have left a link to /proc/self/mem where a client reads or writes: for the kernel that
    is the runtime itself, with its credential.
    """
    try:
        if found.st_dev != os.stat("/proc").st_dev:
            return
        owner = os.readlink(f"/proc/self/fd/{file}").split("/")[2:3]
    except OSError:
        return
    # Each thread has a directory in /proc too, though none is listed.
    if owner and owner[0].isdecimal() and os.access(f"/proc/self/task/{owner[0]}", os.F_OK):
        raise PermissionError(errno.EACCES, "this belongs to the runtime itself", path)
