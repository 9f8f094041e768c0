"""The user's world: PID and mount namespaces, and the threads of the runtime that act in them.

A thread has namespaces and capabilities of its own. One thread, the carrier, starts all programs: they
inherit its world with no helper program in between. Threads that work on the user's files enter it too, so
that what the user leaves for them (a link, a mount point) means for them what it means for him. The rest of
the runtime stays outside, where it sees all of /proc and the real state directory.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from sandpod_runtime.process import procfs
from sandpod_runtime.strict import first, kernel

# What root in a sandbox may do: what container engines give to root, but for packets of its own making. None
# of it undoes a mount, enters a namespace or traces whom the user may not.
ROOTS = frozenset(
    (
        kernel.CHOWN, kernel.DAC_OVERRIDE, kernel.FOWNER, kernel.FSETID, kernel.KILL, kernel.SETGID,
        kernel.SETUID, kernel.SETPCAP, kernel.NET_BIND_SERVICE, kernel.SYS_CHROOT, kernel.MKNOD,
        kernel.AUDIT_WRITE, kernel.SETFCAP,
    )
)  # fmt: skip
# For entering the world, which threads do that come later.
_ENTERING = frozenset((kernel.SYS_ADMIN, kernel.SYS_CHROOT))

T = TypeVar("T")


class World:
    def __init__(self, *, user: int, hidden: Iterable[str], sealed: Iterable[str]) -> None:
        """The caller has the user's UID already, and permitted capabilities. Nobody in the world shall see
        what is in `hidden`, or change what is in `sealed`. Raises OSError.
        """
        self._user = user
        self._hidden = tuple(hidden)
        self._sealed = tuple(sealed)
        self._keeps = ROOTS if user == 0 else frozenset[int]()
        self._mounts = -1
        self.first = 0
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        threading.Thread(target=self._carry, name="world", daemon=True).start()
        if (trouble := self._done.get()) is not None:
            raise trouble

    def run(self, work: Callable[[], T]) -> T:
        """`work`, done by the carrier: what it starts lives in the world. What it raises, this raises. Only
        one caller at a time.
        """
        found: list[T] = []
        self._work.put(lambda: found.append(work()))
        if (trouble := self._done.get()) is not None:
            raise trouble
        return found[0]

    def number(self, pid: int) -> int:
        """What a process of the world is known by there."""
        try:
            return procfs.innermost_pid(procfs.read(f"/proc/{pid}/status"))
        except OSError:
            return pid  # an outsider has killed it, and somebody has buried it: there is none any more

    def enter(self) -> None:
        """The calling thread gives up all it could do outside. It cannot see the world's processes: for that
        it would have to be one of them.
        """
        self._raise_capabilities()
        kernel.unshare(kernel.OWN_ROOT_AND_DIRECTORY)
        kernel.enter(self._mounts, kind=kernel.NEW_MOUNTS)
        keeps = self._keeps & kernel.permitted()
        kernel.set_capabilities(effective=keeps, permitted=keeps)

    def _carry(self) -> None:
        try:
            self._begin()
        except BaseException as error:
            self._done.put(error)
            return
        self._done.put(None)
        while True:
            try:
                self._work.get()()
            except BaseException as error:
                self._done.put(error)
            else:
                self._done.put(None)

    def _begin(self) -> None:
        self._raise_capabilities()
        # Of this thread's children, not of the thread: from here on it could start no other thread.
        kernel.unshare(kernel.NEW_PIDS)
        heard, tell = os.pipe2(os.O_CLOEXEC)
        told, go = os.pipe2(os.O_CLOEXEC)
        try:
            self.first = os.fork()
            if self.first == 0:
                os.close(heard)
                os.close(go)
                first.run(user=self._user, hidden=self._hidden, sealed=self._sealed, tell=tell, told=told)
            os.close(tell)
            tell = -1
            word = os.read(heard, first.LONGEST_WORD)
            if word != first.READY:
                os.waitpid(self.first, 0)
                raise OSError(word.decode("utf-8", "replace") or "its first process ended")
            self._mounts = os.open(f"/proc/{self.first}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            self.enter()
            os.write(go, b"!")
        finally:
            for descriptor in (heard, tell, told, go):
                if descriptor >= 0:
                    os.close(descriptor)

    def _raise_capabilities(self) -> None:
        permitted = kernel.permitted()
        kernel.set_capabilities(effective=permitted, permitted=permitted)


def settle(user: int) -> None:
    """Once the world is there: outside of it, the calling thread and those that it starts keep nothing but
    what it takes to enter. Raises OSError.
    """
    rights = kernel.permitted()
    keeps = rights & ROOTS if user == 0 else frozenset[int]()
    kernel.set_capabilities(effective=keeps, permitted=keeps | rights & _ENTERING)
