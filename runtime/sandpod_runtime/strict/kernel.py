"""The system calls that make a world, as far as Python has none of its own for them.

Those about namespaces and capabilities act on the calling thread alone, which is why a thread can live in
another world than the rest of its process.
"""

import contextlib
import ctypes
import os
from collections.abc import Collection

NEW_MOUNTS = 0x0002_0000
NEW_PIDS = 0x2000_0000
OWN_ROOT_AND_DIRECTORY = 0x0000_0200

READ_ONLY = 0x1
NOSUID_NODEV_NOEXEC = 0x2 | 0x4 | 0x8
REMOUNT = 0x20
BIND = 0x1000
RECURSIVE = 0x4000
PRIVATE = 0x4_0000

CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP = 0, 1, 3, 4, 5, 6, 7, 8
NET_BIND_SERVICE, SYS_CHROOT, SYS_ADMIN, SYS_RESOURCE = 10, 18, 21, 24
MKNOD, AUDIT_WRITE, SETFCAP = 27, 29, 31

_DEATH_SIGNAL = 1
_DUMPABLE = 4
_BOUNDING_READ, _BOUNDING_DROP = 23, 24
_NO_NEW_PRIVILEGES = 38
_CAPABILITIES_VERSION = 0x2008_0522
_MOST_CAPABILITIES = 64

_libc = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def unshare(what: int) -> None:
    _check(_libc.unshare(what), "unshare")


def enter(namespace: int, *, kind: int) -> None:
    """`namespace` is a descriptor of it."""
    _check(_libc.setns(namespace, kind), "setns")


def mount(source: str, target: str, *, kind: str = "", flags: int = 0, data: str = "") -> None:
    done = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _check(done, f"mount {target}")


def permitted() -> frozenset[int]:
    sets = (_Sets * 2)()
    _check(_libc.capget(ctypes.byref(_Header(_CAPABILITIES_VERSION, 0)), sets), "capget")
    found = sets[0].permitted | sets[1].permitted << 32
    return frozenset(each for each in range(_MOST_CAPABILITIES) if found >> each & 1)


def set_capabilities(*, effective: Collection[int], permitted: Collection[int]) -> None:
    sets = (_Sets * 2)()
    for word in range(2):
        sets[word].effective = _bits(effective) >> 32 * word & 0xFFFF_FFFF
        sets[word].permitted = _bits(permitted) >> 32 * word & 0xFFFF_FFFF
    _check(_libc.capset(ctypes.byref(_Header(_CAPABILITIES_VERSION, 0)), sets), "capset")


def bound_programs(*, to: Collection[int]) -> None:
    """No program that is started from now on gets any other capability, whoever starts it and however."""
    for each in range(_MOST_CAPABILITIES):
        if each not in to and _libc.prctl(_BOUNDING_READ, each, 0, 0, 0) == 1:
            _check(_libc.prctl(_BOUNDING_DROP, each, 0, 0, 0), "prctl PR_CAPBSET_DROP")


def forgo_privileges() -> None:
    """The set-user-ID bit of programs means nothing from now on."""
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl PR_SET_NO_NEW_PRIVS")


def set_dumpable(*, dumpable: bool) -> None:
    _check(_libc.prctl(_DUMPABLE, int(dumpable), 0, 0, 0), "prctl PR_SET_DUMPABLE")


def die_with_parent(signal: int) -> None:
    """With the thread that has forked this process, to be exact."""
    _check(_libc.prctl(_DEATH_SIGNAL, signal, 0, 0, 0), "prctl PR_SET_PDEATHSIG")


def rename_process(words: str) -> None:
    """What `ps` shows of this process instead of the command line that it was forked with."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b") ")[2].split()
        start, end = int(fields[45]), int(fields[46])
        text = words.encode()[: max(0, end - start - 1)]
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, text, len(text))


def _bits(capabilities: Collection[int]) -> int:
    return sum(1 << each for each in set(capabilities))


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
