"""Numbers about the operator: what it did, counted where it is done, and what there is, read when somebody
asks. No label holds the name of a sandbox, so that their number is bounded.
"""

from collections.abc import Callable
from typing import TypeVar

from .progress import Progress
from .series import Counter, Gauge, Histogram, Reading, Series

S = TypeVar("S", bound=Series)

NAMESPACE = "sandpod_operator"
# Seconds of one pass: without a write, with a few of them, with an API server that has no time.
PASS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Passes:
    """Over the objects of one kind. Sandboxes' and pools' are told apart: there are so many more of the
    ones that nobody would see that all of the others fail.
    """

    def __init__(self, *, what: str, prefix: str) -> None:
        self.begun = Counter(f"{prefix}_reconciles", f"Passes over a {what}.")
        self.failures = Counter(
            f"{prefix}_reconcile_failures",
            f"Passes over a {what} that ended in an error and are tried again, by reason.",
        )
        self.seconds = Histogram(
            f"{prefix}_reconcile_seconds",
            f"How long a pass over a {what} took, with its requests to the API server.",
            buckets=PASS_SECONDS,
        )
        self.series: list[Series] = [self.begun, self.failures, self.seconds]


class Metrics:
    def __init__(self) -> None:
        self._series: list[Series] = []
        self.sandbox_passes = Passes(what="sandbox", prefix=NAMESPACE)
        self.pool_passes = Passes(what="pool", prefix=f"{NAMESPACE}_pool")
        self._series += [*self.sandbox_passes.series, *self.pool_passes.series]
        self.errors = self._counter(
            "errors", "What failed beside the passes and is tried again, by part of the operator and reason."
        )
        self.api_writes = self._counter(
            "api_writes", "Requests to the API server that write, by verb and resource."
        )
        self.refusals = self._counter(
            "refusals", "Objects that the API server did not take, by the reason that the sandbox then has."
        )
        self.watch_events = self._counter("watch_events", "Events seen, by resource.")
        self.events_dropped = self._counter(
            "events_dropped", "Kubernetes events that were not written, by cause."
        )
        self.asks = self._counter("runtime_asks", "Requests to runtimes, by errand and outcome.")
        self.claims = self._counter("pool_claims", "Sandboxes that asked for a warm pod, by outcome.")
        self.progress = Progress(namespace=NAMESPACE)
        self._series += self.progress.series

    def gauge(
        self,
        name: str,
        description: str,
        read: Callable[[], Reading],
        *,
        label: str | tuple[str, ...] = (),
    ) -> None:
        self._add(Gauge(f"{NAMESPACE}_{name}", description, read, label=label))

    def process(self, name: str, description: str, read: Callable[[], float]) -> None:
        """By the names that all programs use for what is true of any process."""
        self._add(Gauge(f"process_{name}", description, read))

    def text(self) -> str:
        return "".join(f"{line}\n" for series in self._series for line in series.lines())

    def _counter(self, name: str, description: str) -> Counter:
        return self._add(Counter(f"{NAMESPACE}_{name}", description))

    def _add(self, series: S) -> S:
        self._series.append(series)
        return series
