"""The kernel's inotify, which Python 3.11 does not have: opened, told what to watch, read."""

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

MODIFY = 0x2
ATTRIB = 0x4
MOVED_FROM = 0x40
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
DELETE_SELF = 0x400
MOVE_SELF = 0x800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000
ONLY_DIRECTORY = 0x0100_0000
DO_NOT_FOLLOW = 0x0200_0000
# A file that is deleted but still open may be written to for ages.
EXCLUDE_UNLINKED = 0x0400_0000
IS_DIRECTORY = 0x4000_0000

_HEADER = Struct("iIII")
_READ = 1 << 16
_LIMITS = Path("/proc/sys/fs/inotify")


class Raw(NamedTuple):
    watch: int
    mask: int
    cookie: int
    name: str


class LimitError(Exception):
    """The kernel allows no more; the message says which limit it is."""


class Inotify:
    """One instance. Its calls return at once, but `add` looks at a file system."""

    def __init__(self) -> None:
        # None: the C library that this process has already; the image may have another one or none.
        self._library = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _failure(ctypes.get_errno(), "")

    def add(self, path: str, mask: int) -> int:
        watch: int = self._library.inotify_add_watch(self.descriptor, os.fsencode(path), mask)
        if watch < 0:
            raise _failure(ctypes.get_errno(), path)
        return watch

    def remove(self, watch: int) -> None:
        # It fails for a directory that is gone, whose watch went with it.
        self._library.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> list[Raw]:
        """What has happened; nothing if nothing has."""
        try:
            return list(_parsed(os.read(self.descriptor, _READ)))
        except BlockingIOError:
            return []

    def close(self) -> None:
        os.close(self.descriptor)


def _parsed(data: bytes) -> Iterator[Raw]:
    at = 0
    while at < len(data):
        watch, mask, cookie, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        yield Raw(watch, mask, cookie, os.fsdecode(data[at : at + length].rstrip(b"\0")))
        at += length


def _failure(number: int, path: str) -> Exception:
    if number == errno.EMFILE and not _has_room():
        return LimitError("the runtime has as many open files as it may have")
    if number == errno.EMFILE:
        return LimitError(
            "the kernel gives no more inotify instances: fs.inotify.max_user_instances"
            f"{_value('max_user_instances')} is shared by everything that this user runs on the node"
        )
    if number == errno.ENOSPC:
        return LimitError(
            "the kernel watches no more directories: fs.inotify.max_user_watches"
            f"{_value('max_user_watches')} is shared by everything that this user runs on the node"
        )
    if number == errno.ENFILE:
        return LimitError("the node has no more open files to give: fs.file-max")
    if number == errno.ENOMEM:
        return LimitError("the kernel has no memory for another watch")
    return OSError(number, os.strerror(number), path)


def _has_room() -> bool:
    """The kernel says EMFILE both of a process's descriptors and of a user's instances."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _value(limit: str) -> str:
    try:
        return f" ({(_LIMITS / limit).read_text(encoding='ascii').strip()})"
    except OSError:
        return ""
