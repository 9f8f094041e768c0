"""Gives a warm pod to a sandbox: each pod to one sandbox at most, and each sandbox one pod. The pod's
resourceVersion decides who was first; what is in memory only keeps our own workers out of each other's way.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Conflict, Gone, NotFound, Throttled, Unavailable
from sandpod_crds.models import SandboxPool

from ..cluster import Cluster
from ..metrics import Metrics
from ..objects import Json, uid_of
from ..observations import Key
from ..store import Store
from ..times import still_to_come
from .claim import Kind, Order
from .lending import Lending
from .pace import Pace
from .warm import WarmPod, WarmPods

MOST_TRIES = 5
# A request that was sent is not carried out so long after.
UNSURE_FOR = timedelta(seconds=90)
# A sandbox that may not have a warm pod is not tried with the next one at once.
REFUSED_FOR = timedelta(seconds=60)
MOST_REFUSED = 1000

log = logging.getLogger(__name__)


def kind_of(pod: WarmPod) -> Kind:
    return Kind(pod.shape, pod.network)


def _waiting_since(pod: WarmPod) -> tuple[datetime, datetime, Key]:
    return pod.ready_since or pod.created_at, pod.created_at, pod.key


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attempt:
    """A claim that was sent, and whose answer did not come."""

    pod: WarmPod
    until: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class _Refused:
    message: str
    until: datetime


class Claims:
    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        warm: WarmPods,
        lending: Lending,
        metrics: Metrics,
        now: Callable[[], datetime],
        pool_changed: Callable[[Key], None],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._warm = warm
        self._lending = lending
        self._metrics = metrics
        self._now = now
        self._pool_changed = pool_changed
        # UIDs of pods that somebody here is writing to.
        self._taken: set[str] = set()
        # By the sandbox's UID
        self._unsure: dict[str, _Attempt] = {}
        self._refused: OrderedDict[str, _Refused] = OrderedDict()
        self._pace = Pace()

    def free(self, pool: SandboxPool) -> Iterator[WarmPod]:
        """Those that can be claimed now."""
        now, age = self._now(), pool.spec.min_ready_age
        for pod in self._warm.of(pool):
            busy = self.taken(pod) or self._lending.suspects(pod.uid)
            if not busy and pod.claimable(now=now, min_ready_age=age):
                yield pod

    def taken(self, pod: WarmPod) -> bool:
        """Somebody here is writing to it, or has written and does not know what came of it."""
        return pod.uid in self._taken or any(each.pod.uid == pod.uid for each in self._pending())

    def given_up_at(self) -> datetime | None:
        """When the next claim whose answer was lost is given up, and its pod is free again."""
        return min((each.until for each in self._pending()), default=None)

    def reserve(self, pod: WarmPod) -> bool:
        """False when somebody is at it. Whoever got it releases it."""
        if self.taken(pod):
            return False
        self._taken.add(pod.uid)
        return True

    def release(self, pod: WarmPod) -> None:
        self._taken.discard(pod.uid)

    def unsure(self, sandbox_uid: str) -> bool:
        attempt = self._unsure.get(sandbox_uid)
        return attempt is not None and self._is_pending(attempt)

    def refusal(self, sandbox_uid: str) -> str | None:
        """What the API server said to the sandbox's last claim, if that was no."""
        refused = self._refused.get(sandbox_uid)
        if refused is None or still_to_come(refused.until, now=self._now(), within=REFUSED_FOR) is None:
            return None
        return refused.message

    def lately(self, pool: Key) -> tuple[datetime, ...]:
        """Until when each of the pool's latest claims counts as one."""
        return self._pace.lately(pool, now=self._now())

    async def claim(self, order: Order) -> None:
        """At most one pod becomes the sandbox's; what has become of the others that were tried, the Store
        knows.
        """
        self._forget()
        for _ in range(MOST_TRIES):
            attempt = self._unsure.get(order.sandbox_uid)
            lends = order.may_follow and attempt is None and await self._lending.begin(order.pool_key)
            # No await between this look at what is free and the reservation of what it finds.
            pod = attempt.pod if attempt is not None else self._choose(order)
            if pod is None:
                return
            self._taken.add(pod.uid)
            try:
                if lends:
                    await self._lend(order, pod)
                elif attempt is None or await self._can_be_sent_again(order, pod):
                    await self._send(order, pod)
            finally:
                self._taken.discard(pod.uid)
            if self._store.pods.owned_by(namespace=order.pool_key.namespace, uid=order.sandbox_uid):
                self._count(order)
                return
            if self.refusal(order.sandbox_uid) is not None:
                return
        raise Conflict(409, "Conflict", f"{MOST_TRIES} warm pods changed while they were being claimed")

    def _count(self, order: Order) -> None:
        self._metrics.claims.add(outcome="warm")
        self._pace.claimed(order.pool_key, now=self._now())
        self._pool_changed(order.pool_key)

    def _choose(self, order: Order) -> WarmPod | None:
        """The one that has waited for the longest time."""
        fitting = (pod for pod in self.free(order.pool) if kind_of(pod) == order.kind)
        return min(fitting, key=_waiting_since, default=None)

    async def _send(self, order: Order, pod: WarmPod) -> None:
        body: Json = {"metadata": {**order.metadata, "resourceVersion": pod.version}}
        try:
            claimed = await self._cluster.patch(paths.pods(*pod.key), body)
        except NotFound:
            self._store.pod_deleted(pod.key, uid=pod.uid)
        except Conflict:
            await self._read(pod)
        except Unavailable as error:
            log.warning("a claim of %s for %s: %s", pod.key, order.sandbox_uid, error)
            self._unsure[order.sandbox_uid] = _Attempt(pod=pod, until=self._now() + UNSURE_FOR)
            return
        except (Throttled, Gone):
            raise
        except ApiError as error:
            # RBAC, or an admission webhook. Another pod would fare no better.
            refused = _Refused(message=error.message, until=self._now() + REFUSED_FOR)
            self._refused[order.sandbox_uid] = refused
            if len(self._refused) > MOST_REFUSED:
                self._refused.popitem(last=False)
        else:
            self._store.pods.learn(claimed)
        self._unsure.pop(order.sandbox_uid, None)

    async def _lend(self, order: Order, pod: WarmPod) -> None:
        """The pod is looked at before, as a patch would have done: it may have changed, or be gone."""
        found, known = await self._read(pod), self._store.pods.get(pod.key)
        # The watch may have brought more while the answer was on its way.
        same = all(each is not None and pod.is_of(each) for each in (found, known))
        if same and self._lending.stands(order.pool_key) and not self._lending.suspects(pod.uid):
            self._lending.lend(pod, order.metadata, pool=order.pool_key)

    async def _can_be_sent_again(self, order: Order, pod: WarmPod) -> bool:
        """After a lost answer. Only the same claim: with one to another pod, the sandbox could end up with
        two, when the first one comes late.
        """
        found = await self._read(pod)
        # With another version of the pod, the lost one cannot succeed any more, or it has.
        same = found is not None and pod.is_of(found)
        if not same:
            del self._unsure[order.sandbox_uid]
        return same

    async def _read(self, pod: WarmPod) -> Json | None:
        try:
            found = await self._cluster.get(paths.pods(*pod.key))
        except NotFound:
            found = None
        if found is None or uid_of(found) != pod.uid:
            self._store.pod_deleted(pod.key, uid=pod.uid)
            return None
        self._store.pods.learn(found)
        return found

    def _pending(self) -> Iterator[_Attempt]:
        return (attempt for attempt in self._unsure.values() if self._is_pending(attempt))

    def _is_pending(self, attempt: _Attempt) -> bool:
        return still_to_come(attempt.until, now=self._now(), within=UNSURE_FOR) is not None

    def _forget(self) -> None:
        for uid in [uid for uid, attempt in self._unsure.items() if not self._is_pending(attempt)]:
            # Had it been carried out, the watch would have said so.
            del self._unsure[uid]
