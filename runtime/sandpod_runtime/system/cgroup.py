"""What the kernel allows this container and what it uses, from control groups of version 2, version 1, or
none at all.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from sandpod_runtime.process import procfs

MOUNT = "/sys/fs/cgroup"
_MEMBERSHIP = "/proc/self/cgroup"
# Version 1 says "no limit" with a number near 2**63.
_UNLIMITED = 1 << 60
_CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")

N = TypeVar("N", int, float)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """None where there is no limit of the container's own."""

    cpus: float | None = None
    memory: int | None = None
    processes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """None where nobody counts. `memory` leaves out what the kernel would drop at once to make room."""

    cpu_seconds: float | None = None
    throttled_seconds: float | None = None
    memory: int | None = None
    cache: int | None = None
    processes: int | None = None


class Cgroup:
    """The groups of this process, found once: it never moves."""

    def __init__(self, *, mount: str = MOUNT, membership: str = _MEMBERSHIP) -> None:
        paths = memberships(_text(membership) or "")
        self.version = 0
        # From our own group up to the mount, one list for each controller: every level may limit.
        self._groups: dict[str, list[str]] = {}
        if os.access(f"{mount}/cgroup.controllers", os.F_OK):
            self.version = 2
            levels = _levels(mount, paths.get("", "/"))
            self._groups = dict.fromkeys(_CONTROLLERS, levels)
        else:
            for name in _CONTROLLERS:
                if os.access(f"{mount}/{name}", os.X_OK):
                    self.version = 1
                    self._groups[name] = _levels(f"{mount}/{name}", paths.get(name, "/"))

    @property
    def is_our_own(self) -> bool:
        """Whether the group that counts CPU time is a container's, not the whole machine."""
        if not (own := self._own("cpuacct")):
            return False
        if self.version == 2:
            return os.access(f"{own}/cgroup.type", os.F_OK)  # every group has it but the root
        return not os.access(f"{own}/release_agent", os.F_OK)  # only the root has it

    def cpu_seconds(self) -> float | None:
        if self.version == 2:
            microseconds = keyed(self._read("cpuacct", "cpu.stat")).get("usage_usec")
            return None if microseconds is None else microseconds / 1e6
        nanoseconds = number(self._read("cpuacct", "cpuacct.usage"))
        return None if nanoseconds is None else nanoseconds / 1e9

    def limits(self) -> Limits:
        if self.version == 2:
            return Limits(
                cpus=_least(quota(text) for text in self._all("cpu", "cpu.max")),
                memory=_least(number(text) for text in self._all("memory", "memory.max")),
                processes=_least(number(text) for text in self._all("pids", "pids.max")),
            )
        quotas = self._all("cpu", "cpu.cfs_quota_us")
        periods = self._all("cpu", "cpu.cfs_period_us")
        return Limits(
            cpus=_least(quota(f"{used} {period}") for used, period in zip(quotas, periods, strict=True)),
            memory=_least(number(text) for text in self._all("memory", "memory.limit_in_bytes")),
            processes=_least(number(text) for text in self._all("pids", "pids.max")),
        )

    def usage(self) -> Usage:
        newer = self.version == 2
        used = number(self._read("memory", "memory.current" if newer else "memory.usage_in_bytes"))
        details = keyed(self._read("memory", "memory.stat"))
        cpu = keyed(self._read("cpu", "cpu.stat"))
        throttled = cpu.get("throttled_usec" if newer else "throttled_time")
        droppable = details.get("inactive_file" if newer else "total_inactive_file", 0)
        return Usage(
            cpu_seconds=self.cpu_seconds(),
            throttled_seconds=None if throttled is None else throttled / (1e6 if newer else 1e9),
            memory=None if used is None else max(0, used - droppable),
            cache=details.get("file" if newer else "total_cache"),
            processes=number(self._read("pids", "pids.current")),
        )

    def _own(self, controller: str) -> str:
        return next(iter(self._groups.get(controller, ())), "")

    def _read(self, controller: str, name: str) -> str:
        own = self._own(controller)
        return (_text(f"{own}/{name}") or "") if own else ""

    def _all(self, controller: str, name: str) -> list[str]:
        return [_text(f"{group}/{name}") or "" for group in self._groups.get(controller, ())]


def memberships(text: str) -> dict[str, str]:
    """A /proc/<pid>/cgroup: each controller's path; that of version 2 stands under no name."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            found |= dict.fromkeys(controllers.split(","), path)
    return found


def number(text: str) -> int | None:
    """One number; None for "max" and what means the same."""
    text = text.strip()
    if not (text.isascii() and text.isdecimal()) or len(text) > 20:
        return None
    return value if (value := int(text)) < _UNLIMITED else None


def quota(text: str) -> float | None:
    """The CPUs that "quota period" amounts to; None for "max 100000" and "-1 100000"."""
    used, _, period = text.strip().partition(" ")
    if (allowed := number(used)) is None or not (length := number(period)):
        return None
    return allowed / length


def keyed(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if (counted := number(value)) is not None:
            found[name] = counted
    return found


def _levels(mount: str, path: str) -> list[str]:
    # A path with ".." is that of a group outside of our namespace: all that can be seen is the mount.
    names = [] if "/../" in f"{path}/" else [name for name in path.split("/") if name]
    places = ["/".join((mount, *names[:count])) for count in range(len(names), -1, -1)]
    return [place for place in places if os.access(place, os.X_OK)]


def _text(path: str) -> str | None:
    try:
        return procfs.read(path).decode("ascii", "replace")
    except OSError:
        return None


def _least(values: Iterator[N | None]) -> N | None:
    return min((value for value in values if value is not None), default=None)
