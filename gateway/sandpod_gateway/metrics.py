"""Counters and histograms, written as Prometheus' text. Numbers that somebody else keeps (the table's
size, the watch's age) are read when they are asked for.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# Seconds, from a proxy's own share of a request to a command that runs for minutes
BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
)

Labels = tuple[tuple[str, str], ...]
Gauge = tuple[str, Callable[[], float | None]]


class Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(BUCKETS, value)] += 1
        self.sum += value


_COUNTERS: Final = {
    "requests_total": "Requests by the status of their answer.",
    "refusals_total": "Requests that the gateway itself answered with an error, by what kept it.",
    "requests_malformed_total": "Requests that HAProxy refused to read.",
    "audit_lines_lost_total": "Lines of HAProxy's audit log that nobody took fast enough.",
    "wakes_requested_total": "Wakes that were asked for by the annotation.",
    "wakes_failed_total": "Attempts to write that annotation that failed.",
    "wait_refusals_total": "Requests refused because their sandbox could not take them, by cause.",
    "resent_total": "Requests sent once more, because the first pod was going to sleep.",
    "rate_limited_total": "Requests refused because a user or an address sends too many.",
    "token_reviews_total": "Bearer tokens that the API server was asked about, by what it said.",
    "leases_total": "Leases asked of runtimes, by what they said.",
}
_HISTOGRAMS: Final = {
    "request_duration_seconds": "Time until the head of the answer was there.",
    "wake_wait_seconds": "How long requests stood still for a sandbox that had to wake.",
}


class Metrics:
    """`gauges` maps a metric's name to its help text and a function that reads it; None leaves it out."""

    def __init__(self, *, gauges: Mapping[str, Gauge]) -> None:
        self._gauges = gauges
        self._counters: dict[str, Counter[Labels]] = {name: Counter() for name in _COUNTERS}
        self._histograms: dict[str, dict[Labels, Histogram]] = {name: {} for name in _HISTOGRAMS}

    def count(self, name: str, times: int = 1, **labels: str) -> None:
        self._counters[name][tuple(labels.items())] += times

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        self._histograms[name].setdefault(tuple(labels.items()), Histogram()).observe(seconds)

    def request(self, *, door: str, code: int, seconds: float) -> None:
        """`seconds` until the answer's head: a stream's length says nothing about the gateway."""
        self.count("requests_total", door=door, code=str(code))
        self.observe("request_duration_seconds", seconds, door=door)

    def refusal(self, *, door: str, code: int, reason: str) -> None:
        """Beside `request`: what programs in sandboxes answer is theirs, whatever code it has."""
        self.count("refusals_total", door=door, code=str(code), reason=reason)

    def text(self) -> str:
        lines: list[str] = []
        for name, counter in self._counters.items():
            lines += _head(name, "counter", _COUNTERS[name])
            lines += [_line(name, labels, count) for labels, count in sorted(counter.items())]
        for name, histograms in self._histograms.items():
            lines += _head(name, "histogram", _HISTOGRAMS[name])
            for labels, histogram in sorted(histograms.items(), key=lambda item: item[0]):
                lines += _buckets(name, labels, histogram)
        for gauge, (text, read) in self._gauges.items():
            if (value := read()) is not None:
                lines += [*_head(gauge, "counter" if gauge.endswith("_total") else "gauge", text)]
                lines.append(_line(gauge, (), value))
        return "\n".join(lines) + "\n"


def _buckets(name: str, labels: Labels, histogram: Histogram) -> list[str]:
    lines: list[str] = []
    total = 0
    for bound, count in zip((*BUCKETS, "+Inf"), histogram.counts, strict=True):
        total += count
        lines.append(_line(f"{name}_bucket", (*labels, ("le", str(bound))), total))
    return [*lines, _line(f"{name}_sum", labels, histogram.sum), _line(f"{name}_count", labels, total)]


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP sandpod_gateway_{name} {text}", f"# TYPE sandpod_gateway_{name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in labels)
    return f"sandpod_gateway_{name}{f'{{{inside}}}' if inside else ''} {value}"
