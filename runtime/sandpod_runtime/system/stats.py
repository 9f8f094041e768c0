"""How much is used at this moment, against what is allowed: of the container where it has a group of its own,
else of the whole machine.
"""

import os
import time
from dataclasses import dataclass

from sandpod_runtime.system import facts
from sandpod_runtime.system.cgroup import Cgroup

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    at: float
    cpu_seconds: float | None
    throttled_seconds: float | None
    memory: int
    memory_limit: int
    cache: int
    processes: int
    tasks: int | None
    tasks_limit: int | None
    load: tuple[float, float, float]
    disks: dict[str, facts.Disk]


class Meter:
    def __init__(self, *, cgroup: Cgroup, places: tuple[str, ...]) -> None:
        """`places` are the directories whose file systems are measured."""
        self.cgroup = cgroup
        self.whole_machine = not cgroup.is_our_own
        self._places = places

    def cpus(self) -> float:
        """How many may be used at once."""
        allowed = float(len(os.sched_getaffinity(0)))
        limit = self.cgroup.limits().cpus
        return allowed if limit is None else min(allowed, limit)

    def sample(self) -> Sample:
        """Takes a file system's time: not for the event loop."""
        machine = facts.meminfo(facts.text("/proc/meminfo"))
        total = machine.get("MemTotal", 0)
        limits, usage = self.cgroup.limits(), self.cgroup.usage()
        memory, cache, cpu = usage.memory, usage.cache, usage.cpu_seconds
        if self.whole_machine:
            cpu = facts.busy_seconds(facts.text("/proc/stat"), ticks=_TICKS)
        if self.whole_machine or memory is None:
            memory = total - machine.get("MemAvailable", 0)
            cache = machine.get("Cached")
        return Sample(
            at=time.monotonic(),
            cpu_seconds=cpu,
            throttled_seconds=usage.throttled_seconds,
            memory=memory,
            memory_limit=min(total, limits.memory or total),
            cache=cache or 0,
            processes=facts.process_count(),
            tasks=usage.processes,
            tasks_limit=limits.processes,
            load=_load(),
            disks=self.disks(),
        )

    def disks(self) -> dict[str, facts.Disk]:
        found = ((place, facts.disk(place)) for place in self._places)
        return {place: disk for place, disk in found if disk is not None}


def cpus_used(before: Sample, after: Sample) -> float:
    """How many were busy between two samples."""
    if before.cpu_seconds is None or after.cpu_seconds is None or after.at <= before.at:
        return 0.0
    return max(0.0, (after.cpu_seconds - before.cpu_seconds) / (after.at - before.at))


def _load() -> tuple[float, float, float]:
    try:
        return os.getloadavg()
    except OSError:
        return (0.0, 0.0, 0.0)  # a kernel that does not tell
