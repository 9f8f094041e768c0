"""A mark that every process of a command inherits, and keeps when it changes its parent, session, group or
environment.

The mark is the soft limit of real-time CPU time (RLIMIT_RTTIME), set to an absurd number that tells the
command: children inherit it across fork and exec, `env -i` and `setsid` leave it alone, anybody may read it
in /proc/<pid>/limits, and it constrains nothing. Where it cannot be set (a sandboxed kernel, a hard limit),
a variable in the environment serves.

This holds against accident, not malice: a process may lower its own soft limit, or drop the variable, and
outlive its command. The end of the sandbox catches all.
"""

import os
import resource

from sandpod_runtime.process import procfs

_VARIABLE = "SANDPOD_COMMAND_ID"
# 2**62 microseconds are 146,000 years. The random part tells two runtimes on one machine apart.
_BASE = 1 << 62
_RANDOM_BYTES = 3
_COUNT_BITS = 36


class Marks:
    def __init__(self) -> None:
        self._last = _BASE | int.from_bytes(os.urandom(_RANDOM_BYTES)) << _COUNT_BITS
        self._hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
        self._by_limit = self._hard == resource.RLIM_INFINITY and self._limit_works()

    def new(self) -> int:
        self._last += 1
        return self._last

    def put_on(self, mark: int, environ: dict[str, str]) -> dict[str, str]:
        """Make the next child bear `mark`; returns the environment to start it with."""
        if self._by_limit:
            resource.setrlimit(resource.RLIMIT_RTTIME, (mark, self._hard))
            return environ
        return environ | {_VARIABLE: str(mark)}

    def of(self, pid: int) -> int | None:
        """The mark of a process, None when it bears none; raises ProcessLookupError when it has ended."""
        try:
            if self._by_limit:
                return procfs.realtime_limit(procfs.read(f"/proc/{pid}/limits"))
            value = procfs.variable(procfs.read(f"/proc/{pid}/environ"), name=_VARIABLE)
        except FileNotFoundError as error:
            raise ProcessLookupError(pid) from error
        except PermissionError:
            return None  # the environment of a program that runs as another user
        return int(value) if value and value.isdecimal() else None

    def _limit_works(self) -> bool:
        try:
            resource.setrlimit(resource.RLIMIT_RTTIME, (self._last, self._hard))
            return procfs.realtime_limit(procfs.read("/proc/self/limits")) == self._last
        except (OSError, ValueError):
            return False
