"""What Prometheus is told: the requests, what runs, what is held, and what the runtime itself needs."""

import os
import time
from collections.abc import Callable, Iterator, Mapping

from aiohttp.web_response import Response, StreamResponse

from sandpod_runtime import __version__
from sandpod_runtime.budget import Budget
from sandpod_runtime.identity import Identity
from sandpod_runtime.lifecycle.idleness import Idleness
from sandpod_runtime.metrics import Family, Requests, gauge, gauges, written
from sandpod_runtime.process import procfs
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import HEADERS, Request

_MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class MetricsSurface:
    def __init__(
        self,
        *,
        requests: Requests,
        memory: Budget,
        idleness: Idleness,
        identity: Identity,
        running: Mapping[str, Callable[[], int]],
    ) -> None:
        """`running` counts what there is of each kind of thing."""
        self._requests = requests
        self._memory = memory
        self._idleness = idleness
        self._identity = identity
        self._running = running

    def routes(self) -> Routes:
        return {
            ("GET", "/metrics"): Endpoint(
                handler=self._metrics,
                tag="runtime",
                summary="Figures in the text format of Prometheus.",
                media=_MEDIA,
                is_activity=False,
            )
        }

    async def _metrics(self, _: Request) -> StreamResponse:
        text = written([*self._requests.families(), *self._sandbox(), *_process()])
        return Response(body=text.encode(), headers=HEADERS | {"Content-Type": _MEDIA})

    def _sandbox(self) -> Iterator[Family]:
        counts = {kind: count() for kind, count in self._running.items()}
        yield gauges("running", "What there is of a kind of thing this moment.", "kind", counts)
        yield gauge("memory_taken_bytes", "Held for bodies, outputs and logs.", self._memory.taken)
        yield gauge("memory_total_bytes", "What may be held for them.", self._memory.total)
        yield Family(
            name="sandpod_runtime_output_dropped_bytes_total",
            help="Output that was cut from replies or pushed out of logs.",
            kind="counter",
            samples=[("", {}, self._memory.dropped)],
        )
        if (left := self._idleness.left()) is not None:
            yield gauge("seconds_until_sleep", "If nothing more happens; absent: it does not sleep.", left)
        yield gauge("uptime_seconds", "Since it started.", time.time() - self._identity.started_at)
        yield gauge("build_info", "Always 1; the label says what runs.", 1, version=__version__)


def _process() -> Iterator[Family]:
    """Under the names that all programs use for these."""
    resident = int(procfs.read("/proc/self/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (only the number matters)
    used = os.times()
    for name, meaning, value in (
        ("process_resident_memory_bytes", "Resident memory of the runtime.", resident),
        ("process_open_fds", "Open files of the runtime.", files),
    ):
        yield Family(name=name, help=meaning, kind="gauge", samples=[("", {}, value)])
    yield Family(
        name="process_cpu_seconds_total",
        help="CPU time of the runtime.",
        kind="counter",
        samples=[("", {}, round(used.user + used.system, 3))],
    )
