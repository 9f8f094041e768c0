"""What the files of the user's world look like: those of the container, but for /proc, and for what is not
the user's to see.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from sandpod_runtime.strict import kernel

_NULL = "/dev/null"
_USER_NAMESPACES = "/proc/sys/user/max_user_namespaces"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    place: str
    kind: str


def parsed(mountinfo: bytes) -> list[Mount]:
    """The mounts in a /proc/<pid>/mountinfo, in their order."""
    found: list[Mount] = []
    for line in mountinfo.splitlines():
        fields = line.split(b" ")
        if len(fields) > 4 and b"-" in fields:
            kind = fields[fields.index(b"-") + 1 :][:1]
            found.append(Mount(place=_unescaped(fields[4]), kind=b"".join(kind).decode("ascii", "replace")))
    return found


def furnish(*, hidden: Iterable[str], sealed: Iterable[str], before: Iterable[Mount]) -> None:
    """In a mount namespace that is this process's own, and a PID namespace as well. `before` are the mounts
    of the container; nobody in the world shall see what is in `hidden`, or change what is in `sealed`. Raises
    OSError.
    """
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("proc", "/proc", kind="proc", flags=kernel.NOSUID_NODEV_NOEXEC)
    _forbid_user_namespaces()
    for mount in before:
        # What the container's engine has masked there, or made read-only, it has for good reasons.
        if mount.place.startswith("/proc/") and os.path.lexists(mount.place):
            _seal(mount.place) if mount.kind == "proc" else _hide(mount.place)
    for path in hidden:
        _pin(path)
        _hide(path)
    for path in sealed:
        _pin(path)
        _seal(path)


def _hide(path: str) -> None:
    """Something empty lies over it: nobody without CAP_SYS_ADMIN can take that away, whoever he is."""
    if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116
        flags = kernel.READ_ONLY | kernel.NOSUID_NODEV_NOEXEC
        kernel.mount("tmpfs", path, kind="tmpfs", flags=flags, data="size=4k,nr_inodes=2,mode=555")
    else:
        kernel.mount(_NULL, path, flags=kernel.BIND)


def _seal(path: str) -> None:
    """Read-only, and otherwise as it was: some of its flags are not ours to take away."""
    kernel.mount(path, path, flags=kernel.BIND | kernel.RECURSIVE)
    kept = os.statvfs(path).f_flag & kernel.NOSUID_NODEV_NOEXEC
    kernel.mount("none", path, flags=kernel.BIND | kernel.REMOUNT | kernel.READ_ONLY | kept)


def _pin(path: str) -> None:
    """A directory that is a mount point cannot be renamed: nobody puts another one in its place, which would
    be what the runtime finds by that name.
    """
    above = ""
    for name in path.split("/")[1:-1]:
        above += f"/{name}"
        if not os.path.ismount(above):
            kernel.mount(above, above, flags=kernel.BIND | kernel.RECURSIVE)


def _forbid_user_namespaces() -> None:
    """In a user namespace of his own anybody has every capability, and much of the kernel to attack. What is
    hidden stays hidden even there: so this is no promise, and where it cannot be had, all else is.
    """
    try:
        file = os.open(_USER_NAMESPACES, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(file, b"0")
    except OSError:
        return
    finally:
        os.close(file)


def _unescaped(field: bytes) -> str:
    r"""The kernel writes blanks and backslashes as \040."""
    first, *rest = field.split(b"\\")
    return os.fsdecode(first + b"".join(bytes([int(each[:3], 8)]) + each[3:] for each in rest))
