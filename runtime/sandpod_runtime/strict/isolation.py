"""How a runtime that is told to be strict becomes so, or says why it cannot.

It starts as root of the pod's user namespace, and becomes the user either way.
"""

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandpod_runtime.strict import kernel
from sandpod_runtime.strict.world import ROOTS, World, settle

_USERS = "/etc/passwd"
_USERS_READ = 1 << 20
# The map of UIDs of a namespace that is nobody's own: all of them, to themselves.
_WHOLE = [0, 0, 0xFFFF_FFFF]


class UnfitError(Exception):
    """This process may not even run as it is; the message says what to change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolation:
    """Either there is a world, or a reason why not."""

    user: int
    reason: str | None = None
    world: World | None = None

    def variables(self, image: Mapping[str, str]) -> dict[str, str]:
        """What the container's engine has set for root, because the runtime starts as root."""
        users = accounts(_head(_USERS))
        if self.user != 0 and image.get("HOME", "/") in ("/", "/root", users.get(0)):
            return {"HOME": users.get(self.user, "/")}
        return {}


def accounts(passwd: bytes) -> dict[int, str]:
    """The homes in an /etc/passwd."""
    homes: dict[int, str] = {}
    for line in passwd.split(b"\n"):
        fields = line.split(b":")
        if len(fields) == 7 and fields[2].isdigit() and fields[5].startswith(b"/") and b"\0" not in fields[5]:
            homes.setdefault(int(fields[2][:10]), os.fsdecode(fields[5]))
    return homes


def _head(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, _USERS_READ)
    except OSError:
        return b""
    finally:
        os.close(file)


def isolate(*, user: int, state: str | None, hidden: Iterable[str]) -> Isolation:
    """As `user`, in whose world nobody sees what is in `hidden` and in `state`, which is made if need be.
    Raises UnfitError or OSError: it may still be root then, and must not run.
    """
    if reason := _unfit(user):
        return Isolation(user=user, reason=reason)
    try:
        _become(user)
        return Isolation(user=user, world=_world(user=user, state=state, hidden=hidden))
    except OSError as error:
        _give_up(user)
        return Isolation(user=user, reason=f"the kernel refused a world of its own: {error}")


def _unfit(user: int) -> str | None:
    with open("/proc/self/uid_map", "rb") as file:  # noqa: PTH123
        own = [int(field) for field in file.read().split()] != _WHOLE
    if os.geteuid() != 0:
        return "the runtime was not started as root of the pod's user namespace"
    if own:
        return None
    if user == 0:
        raise UnfitError("this pod has no user namespace: root in it would be root of the node")
    _become(user)
    _give_up(user)
    return "this pod has no user namespace of its own, though it asked for one (hostUsers: false)"


def _become(user: int) -> None:
    """The saved UID stays root's, so that the permitted capabilities stay too. None is in effect."""
    kernel.bound_programs(to=ROOTS if user == 0 else ())
    os.setgroups([group for group in os.getgroups() if group != 0 or user == 0])
    os.setresgid(user, user, user)
    os.setresuid(user, user, 0)
    if user != 0:
        kernel.forgo_privileges()
    # A change of user hides a process from itself. The runtime hides when it has looked (hardening.py).
    kernel.set_dumpable(dumpable=True)


def _world(*, user: int, state: str | None, hidden: Iterable[str]) -> World:
    if state is not None:
        os.makedirs(state, mode=0o700, exist_ok=True)  # noqa: PTH103
        if not stat.S_ISDIR(os.lstat(state).st_mode):
            # Hostile code, in a life without isolation, could have left a link to lead us astray later on.
            raise OSError(f"{state} is a link; remove it")
        hidden = (state, *hidden)
    there = [path for path in hidden if os.path.exists(path)]  # noqa: PTH110
    # Root in the sandbox could else change the code that the runtime has yet to load.
    world = World(user=user, hidden=there, sealed=[sys.prefix])
    settle(user)
    return world


def _give_up(user: int) -> None:
    """What is left of root is of no more use, and of much to an attacker."""
    if user != 0:
        os.setresuid(user, user, user)
        kernel.set_capabilities(effective=(), permitted=())
        kernel.set_dumpable(dumpable=True)
        return
    keeps = kernel.permitted() & ROOTS
    kernel.set_capabilities(effective=keeps, permitted=keeps)
