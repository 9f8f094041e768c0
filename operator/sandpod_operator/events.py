"""Kubernetes events, for whoever reads `kubectl describe sandbox`. Written beside the work and never in its
way: when there are too many, or the API server has no time, they are dropped, and not those of a namespace
that has few.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, NotFound
from sandpod_crds.models import Sandbox
from sandpod_crds.names import API_VERSION, OPERATOR, SANDBOX_KIND

from .cluster import Cluster
from .metrics import Metrics
from .objects import Json
from .observations import Key
from .plan import Notice
from .refusals import namespace_is_going
from .times import format_time

# Waiting to be written; more than that are dropped.
MOST_WAITING = 1000
# Remembered, so that the same again is a count on the old one. Kubernetes forgets events after an hour.
MOST_REMEMBERED = 2000
REMEMBERED_FOR = timedelta(minutes=30)
# For one sandbox in that time, whatever it does.
MOST_PER_SANDBOX = 50
LONGEST_MESSAGE = 1024

log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class _Told:
    name: str
    first: datetime
    count: int


@dataclass(kw_only=True, slots=True)
class _Budget:
    until: datetime
    left: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waiting:
    key: Key
    uid: str
    notice: Notice
    at: datetime


class _Turns:
    """What waits, a queue for each namespace: they are served in turns, whatever one of them has to tell."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def put(self, waiting: _Waiting) -> bool:
        """False when there was no room: then the last of the namespace with the most is dropped."""
        self._queues.setdefault(waiting.key.namespace, deque()).append(waiting)
        self._count += 1
        if self._count <= MOST_WAITING:
            return True
        self._take(max(self._queues, key=lambda namespace: len(self._queues[namespace])), last=True)
        return False

    def take(self) -> _Waiting:
        namespace = next(iter(self._queues))
        self._queues.move_to_end(namespace)
        return self._take(namespace)

    def _take(self, namespace: str, *, last: bool = False) -> _Waiting:
        queue = self._queues[namespace]
        self._count -= 1
        taken = queue.pop() if last else queue.popleft()
        if not queue:
            del self._queues[namespace]
        return taken


class Recorder:
    def __init__(
        self, *, cluster: Cluster, instance: str, metrics: Metrics, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._instance = instance
        self._metrics = metrics
        self._now = now
        self._waiting = _Turns()
        self._wake = asyncio.Event()
        self._told: OrderedDict[tuple[str, str], _Told] = OrderedDict()
        self._budgets: OrderedDict[str, _Budget] = OrderedDict()

    def tell(self, sandbox: Sandbox, notice: Notice) -> None:
        uid = sandbox.metadata.uid
        if not self._afford(uid):
            self._metrics.events_dropped.add(cause="too many for one sandbox")
            return
        key = Key(sandbox.metadata.namespace, sandbox.metadata.name)
        if not self._waiting.put(_Waiting(key=key, uid=uid, notice=notice, at=self._now())):
            self._metrics.events_dropped.add(cause="queue full")
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        while self._waiting:
            waiting = self._waiting.take()
            try:
                await self._write(waiting)
            except ApiError as error:
                if namespace_is_going(error):
                    # Nobody will read it there.
                    self._metrics.events_dropped.add(cause="namespace going")
                    continue
                self._metrics.events_dropped.add(cause="error")
                self._metrics.errors.add(part="events", reason=type(error).__name__)
                log.warning("the event %s for %s is lost: %s", waiting.notice.reason, waiting.key, error)

    async def _write(self, waiting: _Waiting) -> None:
        told = self._told.get((waiting.uid, waiting.notice.reason))
        if told is not None and waiting.at - told.first < REMEMBERED_FOR:
            try:
                await self._count(told, waiting)
            except NotFound:
                pass
            else:
                return
        await self._create(waiting)

    async def _count(self, told: _Told, waiting: _Waiting) -> None:
        body: Json = {
            "count": told.count + 1,
            "lastTimestamp": format_time(waiting.at),
            "message": waiting.notice.message[:LONGEST_MESSAGE],
        }
        await self._cluster.patch(paths.events(waiting.key.namespace, told.name), body)
        told.count += 1

    async def _create(self, waiting: _Waiting) -> None:
        key, notice, at = waiting.key, waiting.notice, format_time(waiting.at)
        unique = f"{waiting.uid} {notice.reason} {waiting.at.isoformat()}"
        name = f"{key.name}.{hashlib.sha256(unique.encode()).hexdigest()[:16]}"
        body: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": SANDBOX_KIND,
                "namespace": key.namespace,
                "name": key.name,
                "uid": waiting.uid,
            },
            "type": notice.tone.value,
            "reason": notice.reason,
            "message": notice.message[:LONGEST_MESSAGE],
            "source": {"component": OPERATOR},
            "reportingComponent": OPERATOR,
            "reportingInstance": self._instance,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        await self._cluster.create(paths.events(key.namespace), body)
        self._told[waiting.uid, notice.reason] = _Told(name=name, first=waiting.at, count=1)
        if len(self._told) > MOST_REMEMBERED:
            self._told.popitem(last=False)

    def _afford(self, uid: str) -> bool:
        now = self._now()
        budget = self._budgets.get(uid)
        if budget is None or now >= budget.until:
            self._budgets.pop(uid, None)
            budget = self._budgets[uid] = _Budget(until=now + REMEMBERED_FOR, left=MOST_PER_SANDBOX)
            if len(self._budgets) > MOST_REMEMBERED:
                self._budgets.popitem(last=False)
        budget.left -= 1
        return budget.left >= 0
