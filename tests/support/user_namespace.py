"""Runs a program as root of a user namespace of its own, as a pod with `hostUsers: false` does it: to be put
before a command. The process stays the same one, so that a test can signal it and wait for it.
"""

import ctypes
import os
import sys
from pathlib import Path

FIRST_UID = 100_000
COUNT = 65_536
_SHARED = "--shared"
_NEW_USER, _NEW_MOUNTS = 0x1000_0000, 0x0002_0000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x4_0000

_libc = ctypes.CDLL(None, use_errno=True)


def prefix(*, shared: bool = False) -> list[str]:
    """With `shared` the user namespace is everybody's, as on a node that cannot make another one."""
    return [sys.executable, __file__, *([_SHARED] if shared else [])]


def refusal() -> str | None:
    """Why there cannot be one here."""
    if os.geteuid() != 0:
        return "only root can map the UIDs of a user namespace"
    process = os.fork()
    if process == 0:
        os._exit(int(_libc.unshare(_NEW_USER | _NEW_MOUNTS) != 0))
    return "the kernel refuses a user namespace" if os.waitpid(process, 0)[1] else None


def main(command: list[str]) -> None:
    _do(_libc.unshare(_NEW_MOUNTS))
    _mount(None, "/", flags=_RECURSIVE | _PRIVATE)
    _open_python()
    if command[0] == _SHARED:
        os.execvp(command[1], command[1:])
    process = os.getpid()
    unshared, tell = os.pipe()
    mapped, told = os.pipe()
    if os.fork() == 0:
        os.read(unshared, 1)
        for kind in ("uid_map", "gid_map"):
            Path(f"/proc/{process}/{kind}").write_text(f"0 {FIRST_UID} {COUNT}\n", encoding="ascii")
        os.write(told, b"!")
        os._exit(0)
    _do(_libc.unshare(_NEW_USER | _NEW_MOUNTS))
    os.write(tell, b"!")
    os.close(told)
    if not os.read(mapped, 1):
        sys.exit("the UIDs of the user namespace cannot be mapped")
    os.wait()
    os.setresgid(0, 0, 0)
    os.setgroups([0])
    os.setresuid(0, 0, 0)
    os.execvp(command[0], command)


def _open_python() -> None:
    """Our Python may lie in somebody's home, where nobody else gets to."""
    home = Path(sys.base_prefix)
    for above in reversed(home.parents):
        if not above.stat().st_mode & 0o001:
            kept = os.open(home, os.O_PATH)
            _mount("tmpfs", str(above), kind="tmpfs", data="mode=755")
            home.mkdir(parents=True)
            _mount(f"/proc/self/fd/{kept}", str(home), flags=_BIND | _RECURSIVE)
            os.close(kept)
            return


def _mount(source: str | None, target: str, *, kind: str = "none", flags: int = 0, data: str = "") -> None:
    words = [None if each is None else each.encode() for each in (source, target, kind)]
    _do(_libc.mount(*words, ctypes.c_ulong(flags), data.encode()))


def _do(result: int) -> None:
    if result != 0:
        sys.exit(f"a user namespace cannot be furnished: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(sys.argv[1:])
