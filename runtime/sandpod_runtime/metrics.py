"""Figures about the requests, and the text in which Prometheus reads figures.

Labels take values from what the program itself knows, never from what a request says: nobody can make the
number of series grow.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import msgspec

_PREFIX = "sandpod_runtime_"
# An exec of a small command takes milliseconds, a build minutes.
BOUNDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
_METHODS = frozenset(("GET", "POST", "PUT", "DELETE", "OPTIONS"))
_NO_ROUTE = "none"

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One metric: its samples are (suffix of the name, labels, value)."""

    name: str
    help: str
    kind: Literal["gauge", "counter", "histogram"]
    samples: Iterable[Sample]


class _Durations(msgspec.Struct):
    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0


class Requests:
    """What the door counts."""

    def __init__(self) -> None:
        self._in_flight: Counter[str] = Counter()
        self._answered: dict[tuple[str, str, int], int] = {}
        self._durations: dict[str, _Durations] = {}

    @contextmanager
    def in_flight(self, route: str) -> Generator[None]:
        self._in_flight[route] += 1
        try:
            yield
        finally:
            self._in_flight[route] -= 1

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """`route` is the path as it is declared; empty when there is none."""
        key = (method if method in _METHODS else "other", route or _NO_ROUTE, status)
        self._answered[key] = self._answered.get(key, 0) + 1
        durations = self._durations.setdefault(key[1], _Durations())
        durations.counts[bisect_left(BOUNDS, seconds)] += 1
        durations.total += seconds

    def families(self) -> Iterator[Family]:
        yield Family(
            name=f"{_PREFIX}requests_total",
            help="Requests that were answered, by the status; 499 is a client that hung up.",
            kind="counter",
            samples=[
                ("", {"method": method, "route": route, "status": str(status)}, count)
                for (method, route, status), count in self._answered.items()
            ],
        )
        yield Family(
            name=f"{_PREFIX}request_seconds",
            help="How long requests took, streams to their end.",
            kind="histogram",
            samples=list(self._histogram()),
        )
        yield gauges(
            "requests_in_flight", "Requests, streams and sockets that are open.", "route", self._in_flight
        )

    def _histogram(self) -> Iterator[Sample]:
        for route, durations in self._durations.items():
            below = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), durations.counts, strict=True):
                below += count
                yield "_bucket", {"route": route, "le": bound}, below
            yield "_sum", {"route": route}, durations.total
            yield "_count", {"route": route}, below


def gauge(name: str, meaning: str, value: float, **labels: str) -> Family:
    return Family(name=_PREFIX + name, help=meaning, kind="gauge", samples=[("", labels, value)])


def gauges(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Family:
    samples: list[Sample] = [("", {label: key}, value) for key, value in values.items()]
    return Family(name=_PREFIX + name, help=meaning, kind="gauge", samples=samples)


def written(families: Iterable[Family]) -> str:
    lines: list[str] = []
    for family in families:
        name = family.name
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}"]
        for suffix, labels, value in family.samples:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(f"{name}{suffix}{{{inside}}} {value}" if inside else f"{name}{suffix} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
