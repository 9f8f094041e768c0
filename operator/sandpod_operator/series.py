"""Counters, gauges and histograms in Prometheus' text format. A few lines of our own: a client library would
be more memory than all that they count.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

Labels = tuple[tuple[str, str], ...]
# A number, or one for each value of a label, or for each combination of several.
Reading = float | Mapping[str, float] | Mapping[tuple[str, ...], float]


class Series(Protocol):
    @property
    def name(self) -> str: ...

    def lines(self) -> Iterator[str]: ...


class Counter:
    def __init__(self, name: str, description: str) -> None:
        self.name = f"{name}_total"
        self._description = description
        self._values: dict[Labels, float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        key = tuple(sorted(labels.items()))
        self._values[key] = self._values.get(key, 0) + amount

    def value(self, **labels: str) -> float:
        """Of all series that have these labels."""
        wanted = set(labels.items())
        return sum(value for key, value in self._values.items() if wanted <= set(key))

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "counter", self._description)
        yield from (_line(self.name, key, value) for key, value in self._values.items())


class Gauge:
    """Read when somebody asks. One whose name ends in `_total` is a counter that somebody else keeps."""

    def __init__(
        self, name: str, description: str, read: Callable[[], Reading], *, label: str | tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self._description = description
        self._read = read
        self._labels = (label,) if isinstance(label, str) else label

    def lines(self) -> Iterator[str]:
        kind = "counter" if self.name.endswith("_total") else "gauge"
        yield from _head(self.name, kind, self._description)
        reading = self._read()
        if not isinstance(reading, Mapping):
            yield _line(self.name, (), reading)
            return
        for key, value in reading.items():
            texts = (key,) if isinstance(key, str) else key
            yield _line(self.name, tuple(zip(self._labels, texts, strict=True)), value)


class Histogram:
    """Seconds, by how long things took."""

    def __init__(self, name: str, description: str, *, buckets: Sequence[float]) -> None:
        self.name = name
        self._description = description
        self._buckets = tuple(buckets)
        # For each combination of labels: how many fell into each bucket, and the sum of all.
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, seconds: float, **labels: str) -> None:
        key = tuple(sorted(labels.items()))
        counts = self._counts.setdefault(key, [0] * (len(self._buckets) + 1))
        counts[bisect_left(self._buckets, seconds)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + seconds

    def count(self, **labels: str) -> int:
        """Of all series that have these labels."""
        wanted = set(labels.items())
        return sum(sum(counts) for key, counts in self._counts.items() if wanted <= set(key))

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "histogram", self._description)
        for key, counts in self._counts.items():
            total = 0
            for bound, count in zip((*self._buckets, float("inf")), counts, strict=True):
                total += count
                text = "+Inf" if bound == float("inf") else f"{bound:g}"
                yield _line(f"{self.name}_bucket", (*key, ("le", text)), total)
            yield _line(f"{self.name}_sum", key, self._sums[key])
            yield _line(f"{self.name}_count", key, total)


def _head(name: str, kind: str, description: str) -> Iterator[str]:
    yield f"# HELP {name} {description}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    # All digits: with fewer, a counter stands still once it is large.
    number = f"{value:.0f}" if value == int(value) else f"{value:.15g}"
    inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {number}" if inside else f"{name} {number}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
