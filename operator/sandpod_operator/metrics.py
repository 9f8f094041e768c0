"""Numbers about the operator in Prometheus' text format. A few lines of our own: a client library would be
more memory than all that they count.
"""

from collections.abc import Callable, Iterator, Mapping

NAMESPACE = "sandpod_operator"


class Counter:
    def __init__(self, name: str, description: str) -> None:
        self.name = f"{NAMESPACE}_{name}_total"
        self._description = description
        self._values: dict[tuple[tuple[str, str], ...], float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        key = tuple(sorted(labels.items()))
        self._values[key] = self._values.get(key, 0) + amount

    def value(self, **labels: str) -> float:
        """Of all series that have these labels."""
        wanted = set(labels.items())
        return sum(value for key, value in self._values.items() if wanted <= set(key))

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "counter", self._description)
        yield from (_line(self.name, dict(key), value) for key, value in self._values.items())


class Gauge:
    """A number, or one for each value of a label, read when somebody asks."""

    def __init__(
        self, name: str, description: str, read: Callable[[], float | Mapping[str, float]], *, label: str = ""
    ) -> None:
        self.name = f"{NAMESPACE}_{name}"
        self._description = description
        self._read = read
        self._label = label

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "gauge", self._description)
        value = self._read()
        if isinstance(value, Mapping):
            yield from (_line(self.name, {self._label: name}, each) for name, each in value.items())
        else:
            yield _line(self.name, {}, value)


class Metrics:
    def __init__(self) -> None:
        self.reconciles = Counter("reconciles", "Passes over a sandbox.")
        self.failures = Counter("reconcile_failures", "Passes that ended in an error and are tried again.")
        self.api_writes = Counter(
            "api_writes", "Requests to the API server that write, by verb and resource."
        )
        self.watch_events = Counter("watch_events", "Events seen, by resource.")
        self.events_dropped = Counter("events_dropped", "Kubernetes events that were not written, by cause.")
        self.asks = Counter("runtime_asks", "Requests to runtimes that want to bind them, by outcome.")
        self.claims = Counter("pool_claims", "Sandboxes that asked for a warm pod, by outcome.")
        self._series: list[Counter | Gauge] = [
            self.reconciles,
            self.failures,
            self.api_writes,
            self.watch_events,
            self.events_dropped,
            self.asks,
            self.claims,
        ]

    def gauge(
        self, name: str, description: str, read: Callable[[], float | Mapping[str, float]], *, label: str = ""
    ) -> None:
        self._series.append(Gauge(name, description, read, label=label))

    def text(self) -> str:
        return "".join(f"{line}\n" for series in self._series for line in series.lines())


def _head(name: str, kind: str, description: str) -> Iterator[str]:
    yield f"# HELP {name} {description}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value:g}" if inside else f"{name} {value:g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
