"""The first process of the user's world. It furnishes the world, and from then on has nothing to do but bury
the processes whose parents have gone: without a first process, the kernel ends all the others.

It is a fork of the runtime from before anything was imported that the runtime needs, and small for that
reason. It knows no secret, and keeps no capability.
"""

import contextlib
import os
import signal
from collections.abc import Iterable
from typing import NoReturn

from sandpod_runtime.strict import kernel, mounts

_NAME = "sandpod: the first process of this sandbox"
READY = b"ready"
LONGEST_WORD = 1024
_MOST_FILES = 1024


def run(*, user: int, hidden: Iterable[str], sealed: Iterable[str], tell: int, told: int) -> NoReturn:
    """In the child of a fork. Writes READY, or what went wrong, to `tell`; waits for a byte from `told`."""
    try:
        _prepare(hidden, sealed)
        # Before the runtime opens this process's namespaces: the kernel lets nobody do so who is less.
        os.setresuid(user, user, user)
        kernel.set_capabilities(effective=(), permitted=())
        os.write(tell, READY)
        if not os.read(told, 1):
            os._exit(1)  # the runtime has gone
        _retire()
        _bury_for_ever()
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(tell, (str(error) or repr(error)).encode("utf-8", "replace")[:LONGEST_WORD])
    finally:
        # Never back to where the runtime would have gone on.
        os._exit(1)


def _prepare(hidden: Iterable[str], sealed: Iterable[str]) -> None:
    os.setsid()
    kernel.die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever ignores it has no children to bury
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with open("/proc/self/mountinfo", "rb") as file:  # noqa: PTH123
        before = mounts.parsed(file.read())
    kernel.unshare(kernel.NEW_MOUNTS)
    mounts.furnish(hidden=hidden, sealed=sealed, before=before)
    os.chdir("/")


def _retire() -> None:
    # Nobody traces it: it would end, and with it the world.
    kernel.set_dumpable(dumpable=False)
    kernel.rename_process(_NAME)
    os.closerange(0, _MOST_FILES)


def _bury_for_ever() -> NoReturn:
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        signal.sigwait((signal.SIGCHLD,))
