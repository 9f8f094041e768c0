"""The process that searches: it can be killed, and the kernel's first victim when memory runs out is this.

Its argument is the request, as JSON. It writes one JSON object per line: what it found, and a summary.
"""

import contextlib
import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

from sandpod_runtime.search.globs import GlobError

MEMORY = 512 << 20
# Of all results together, so that the runtime, which holds them, need not cut them off.
MOST_OUTPUT = 4 << 20

Json = dict[str, Any]


class Full(Exception):
    """There is no room, or no time, for more; the reason is the protocol's word for it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Output:
    """What was found, on its way out; told how many there may be."""

    def __init__(self, *, limit: int, seconds: float) -> None:
        self._limit = limit
        self._deadline = time.monotonic() + seconds
        self._size = 0
        self.count = 0

    def put(self, found: Json) -> None:
        # Only what comes after the last that is wanted shows that there is more.
        if self.count >= self._limit:
            raise Full("limit")
        line = json.dumps(found, separators=(",", ":"))
        self._size += len(line)
        if self._size > MOST_OUTPUT:
            raise Full("size")
        sys.stdout.write(f"{line}\n")
        self.count += 1

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def check_time(self) -> None:
        if self.is_late:
            raise Full("time")


def main(argument: str) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with contextlib.suppress(OSError):  # then the kernel chooses by size
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    request: Json = json.loads(argument)
    output = Output(limit=request["limit"], seconds=request["timeoutMs"] / 1000)
    summary: Json = {"truncated": []}
    try:
        _search(request, output, summary)
    except Full as full:
        summary["truncated"].append(full.reason)
    except MemoryError:
        summary["truncated"].append("memory")
    except OSError as error:
        summary = {"errno": error.errno}
    except (re.error, GlobError, OverflowError, RecursionError) as error:
        summary = {"problem": str(error) or "it is too complex"}
    sys.stdout.write(json.dumps(summary) + "\n")
    sys.stdout.flush()
    # Not through the interpreter's end: there is nothing to tidy up.
    os._exit(0)


def _search(request: Json, output: Output, summary: Json) -> None:
    if request["kind"] == "find":
        from sandpod_runtime.search.find import find

        find(request, output, summary)
    else:
        from sandpod_runtime.search.grep import grep

        grep(request, output, summary)
