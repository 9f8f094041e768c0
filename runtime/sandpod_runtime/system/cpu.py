"""How much CPU time the user's processes have used: what tells a sandbox that works from one that idles.

Cheap enough to be asked every second.
"""

import os
import resource
from functools import cache

from sandpod_runtime.process import procfs
from sandpod_runtime.system.cgroup import Cgroup

_TICKS = os.sysconf("SC_CLK_TCK")


class UserCpu:
    """All that runs in this container but the runtime itself; processes that have ended count on."""

    def __init__(self, cgroup: Cgroup) -> None:
        self._most = 0.0
        # The container's group counts exactly, at the cost of one small file. It must hold nobody else: so
        # only for PID 1, and never when it is the whole machine's.
        self._cgroup = cgroup if os.getpid() == 1 and cgroup.is_our_own else None

    def seconds(self) -> float:
        """Never less than the last time, though a process may vanish between two reads."""
        self._most = max(self._most, self._now())
        return self._most

    def _now(self) -> float:
        if self._cgroup is not None and (counted := self._cgroup.cpu_seconds()) is not None:
            return counted - _spent(resource.RUSAGE_SELF)
        # The runtime buries every orphan, so what has ended is in its own account of its children.
        return _spent(resource.RUSAGE_CHILDREN) + _of_the_living() / _TICKS


def descendants_ticks(stats: dict[int, bytes], *, root: int) -> int:
    """The ticks of all below `root` and of the children that they have buried, from /proc/<pid>/stat each."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for pid, stat in stats.items():
        fields = stat[stat.rindex(b")") + 2 :].split(b" ", 15)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(int(field) for field in fields[11:15])
    total = 0
    waiting = list(children.get(root, ()))
    while waiting:
        pid = waiting.pop()
        total += ticks[pid]
        waiting += children.get(pid, ())
    return total


def _of_the_living() -> int:
    stats: dict[int, bytes] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 (a Path for each process is most of the cost)
        if name.isdecimal():
            try:
                stats[int(name)] = procfs.read(f"/proc/{name}/stat")
            except (FileNotFoundError, ProcessLookupError):
                continue
    return descendants_ticks(stats, root=os.getpid())


def _spent(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


@cache
def _meter() -> UserCpu:
    return UserCpu(Cgroup())


def user_cpu_seconds() -> float:
    """Seconds of CPU time of the user's processes, since the container started."""
    return _meter().seconds()
