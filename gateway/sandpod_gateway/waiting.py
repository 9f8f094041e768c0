"""Requests that stand still until their sandbox can take them: how many, how long, and for what pod not."""

import contextlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from .errors import NotReady
from .routes import Key

T = TypeVar("T")

# A runtime that says it is going to sleep never comes back. Its pod is out of the table long before this.
CERTAIN_SECONDS: Final = 60.0
# A connection that failed says less: after this the pod is asked again.
UNCERTAIN_SECONDS: Final = 2.0
_MARKS: Final = 4096


class LeavingPods:
    """Pods, by their UID, that the table still calls ready and that did not take a request."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()

    def mark(self, pod_uid: str, *, certain: bool) -> None:
        until = self._clock() + (CERTAIN_SECONDS if certain else UNCERTAIN_SECONDS)
        self._until[pod_uid] = max(until, self._until.pop(pod_uid, until))
        while len(self._until) > _MARKS:
            self._until.popitem(last=False)

    def left(self, pod_uid: str) -> float:
        """For how many seconds more nothing is sent there; 0 for a pod that has no mark."""
        return max(self._until.get(pod_uid, 0.0) - self._clock(), 0.0)


class Room:
    """Bounded per sandbox, per namespace and in all, because each of those who wait holds a connection and
    what the client has already sent of its body. Who cannot be woken leaves room for other tenants.
    """

    def __init__(self, *, per_sandbox: int, per_namespace: int, total: int) -> None:
        self._per_sandbox = per_sandbox
        self._total = total
        self._per_namespace = per_namespace
        self._waiting: Counter[Key] = Counter()
        self._tenants: Counter[str] = Counter()
        self.waiting = 0

    @contextlib.contextmanager
    def enter(self, key: Key) -> Generator[None]:
        if self._waiting[key] >= self._per_sandbox:
            raise Full(
                f'{self._per_sandbox} requests wait here for sandbox "{key[1]}" already, and more are not '
                "taken: try again when it is awake",
                cause="sandbox_full",
            )
        namespace = key[0]
        if self._tenants[namespace] >= self._per_namespace:
            raise Full(
                f"{self._per_namespace} requests wait here for sandboxes of the namespace "
                f'"{namespace}" already, and more are not taken: try again when some are awake',
                cause="namespace_full",
            )
        if self.waiting >= self._total:
            raise Full(
                f"{self._total} requests wait here for sandboxes to wake, and more are not taken now",
                cause="gateway_full",
            )
        self._waiting[key] += 1
        self._tenants[namespace] += 1
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1
            _leave(self._waiting, key)
            _leave(self._tenants, namespace)

    def is_empty(self, key: Key) -> bool:
        return key not in self._waiting


def _leave(counter: Counter[T], name: T) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]


class Full(NotReady):
    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class Patience:
    """One request's: all its waits together take no longer than one."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: float | None = None
        # Why the last pod did not take it, for the answer when no other one comes
        self.cause = ""

    def left(self, limit: float) -> float:
        """Seconds; time begins with the first question."""
        now = self._clock()
        if self._begun is None:
            self._begun = now
        return self._begun + limit - now
