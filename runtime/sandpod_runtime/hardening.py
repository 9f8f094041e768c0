"""What the runtime does to itself before it listens, because the code it will run may be hostile and has
its UID.

Hiding its memory keeps the credential from commands: they can neither trace it nor read /proc/<pid>/environ
or mem. Being a reaper makes processes whose parent has gone its children, so that a kill of a command's
tree finds them.
"""

import ctypes
import fcntl
import os
import resource
from pathlib import Path

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
ENOUGH_FILES = 16_384
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3


def harden() -> None:
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _keep_the_heap()


def _keep_the_heap() -> None:
    """Bulk output passes through pieces of 256 KiB. By itself glibc gives their memory back to the kernel
    after each, and gets it anew, page by page: half of the time that a stream takes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has no such thing
        mallopt(M_TRIM_THRESHOLD, 4 << 20)
        # What is larger than this comes from the kernel, and goes back to it at once.
        mallopt(M_MMAP_THRESHOLD, 1 << 20)


def prepare_files() -> int | None:
    """Leave no descriptor that a command would inherit, and room for many.

    Returns the limit that there was, for commands to get; None when it was high enough.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # A pipe that took the place of a missing standard stream would be mistaken for it in a child.
            os.open(os.devnull, os.O_RDWR)
    for entry in Path("/proc/self/fd").iterdir():
        _close_on_exec(int(entry.name))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(ENOUGH_FILES, hard)
    if not 0 <= soft < enough:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
    return soft


def _close_on_exec(number: int) -> None:
    if number < 3:
        return
    try:
        flags = fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError:
        return  # the descriptor that listed the directory
    fcntl.fcntl(number, fcntl.F_SETFD, flags | fcntl.FD_CLOEXEC)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
