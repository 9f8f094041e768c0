"""Claims in a burst. To tell a pod whose it is costs Kubernetes a third of all that a claim costs: the API
server, etcd, the scheduler, and the kubelet, which compares all pods of its node each time. In a burst that
waits, and the CPU is left to those who have just got their pods.

Until it is written, the sandbox's status names the pod, and the Store sees the pod as it will be. A pod that
was bound and is not named yet, nobody knows of when the operator is killed. So before the first such claim
the pool is marked in its status, and until the last pod was told: an operator that finds a mark of another
one takes every pod of the pool that no status names for one that may be somebody's, and has it replaced.
docs/decisions/0017-pods-are-told-after-a-burst.md says why.
"""

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from sandpod_crds.errors import ApiError, Conflict, NotFound
from sandpod_crds.names import LABEL_VERSION, SANDBOX_KIND, child_labels

from ..cluster import Cluster
from ..kinds import POOL
from ..objects import Json, controller, key_of, owner_reference, section, uid_of
from ..observations import Key
from ..pods import ANNOTATION_CLAIMED_AT
from ..store import Store
from ..times import format_time, still_to_come
from .warm import WarmPod

# A pool that could not be marked is not tried again with the next claim of the same burst.
REFUSED_FOR = timedelta(seconds=10)

log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class _Loan:
    mark: str
    # Nobody is about to take it off, and it is known to have been set.
    firm: bool = False


class Lending:
    def __init__(self, *, cluster: Cluster, store: Store, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._store = store
        self._now = now
        self._loans: dict[Key, _Loan] = {}
        # By the pool and their UID: pods that have yet to be told, or of which nobody knows.
        self._pods: defaultdict[Key, dict[str, Key]] = defaultdict(dict)
        # Every mark that we have ever sent begins so.
        self._name = secrets.token_hex(8)
        # By their UID: pods of which nobody knows whether they wait.
        self._suspects: dict[str, Key] = {}
        self._refused: dict[Key, datetime] = {}
        self._recalled = False
        # Marks are set and taken off one after the other. Each for as long as somebody is at it.
        self._marking: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    def suspects(self, uid: str) -> bool:
        return uid in self._suspects

    def doubt(self, pod: WarmPod) -> None:
        """Somebody was asked to remove it, and may be about to."""
        self._suspects[pod.uid] = pod.key

    async def begin(self, pool: Key) -> bool:
        """Whether the pool is marked. Whoever waits for anything after this asks `stands` again."""
        if self.stands(pool):
            return True
        async with self._marking.setdefault(pool, asyncio.Lock()):
            obj = self._store.pools.get(pool)
            if self.stands(pool) or obj is None or "deletionTimestamp" in obj["metadata"]:
                return self.stands(pool)
            refused = self._refused.get(pool)
            if refused and still_to_come(refused, now=self._now(), within=REFUSED_FOR) is not None:
                return False
            # Before ours is written over it.
            self._heed(pool)
            mark = f"{self._name}-{secrets.token_hex(4)}"
            try:
                await self._patch(pool, {"status": {"lending": mark}})
            except ApiError as error:
                # Then pods are told at once.
                log.warning("%s could not be marked for a burst of claims: %s", pool, error)
            else:
                self._loans[pool] = _Loan(mark=mark, firm=True)
            if not self.stands(pool):
                self._refused[pool] = self._now() + REFUSED_FOR
            return self.stands(pool)

    def stands(self, pool: Key) -> bool:
        """Our own mark is on this very pool: one that was made anew under this name has none, and an API
        server that does not know the field has dropped it.
        """
        loan = self._loans.get(pool)
        return loan is not None and loan.firm and loan.mark == self._mark_on(pool)

    def lend(self, pod: WarmPod, metadata: Json, *, pool: Key) -> None:
        """The pod is whose this metadata says."""
        self._pods[pool][pod.uid] = pod.key
        self._store.pods.foresee(pod.key, metadata)

    def serves(self, pod: Json) -> bool:
        """It has been lent, to a sandbox that is there."""
        metadata = pod["metadata"]
        if metadata["uid"] not in self._store.pods.unwritten:
            return False
        owner = controller(metadata)
        return self._store.has_sandbox(Key(metadata["namespace"], owner["name"]), uid=owner["uid"])

    def abandoned(self, pool: Key) -> list[Json]:
        """Pods that were lent and whose sandbox is gone. The garbage collector does not know whose they were,
        and who looks after a new sandbox of that name does not either.
        """
        lent = [self._pod(uid, key) for uid, key in self._pods.get(pool, {}).items()]
        return [pod for pod in lent if pod is not None and self._is_abandoned(pod)]

    async def tidy(self, pool: Key) -> bool:
        """Take off the mark of a pool all of whose pods say whose they are. Whether that is still to come."""
        self._forget(pool)
        self._heed(pool)
        if self._is_needed(pool):
            return True
        if pool not in self._loans:
            return False
        async with self._marking.setdefault(pool, asyncio.Lock()):
            loan = self._loans.get(pool)
            if loan is None or self._is_needed(pool):
                return loan is not None
            # Nothing is lent by it from here on, whatever comes of this.
            loan.firm = False
            if self._mark_on(pool) is not None:
                await self._take_off(pool)
            if self._mark_on(pool) is not None:
                return True
            del self._loans[pool]
        return False

    def recall(self) -> None:
        """What an earlier operator has lent. Once, with the Store filled and before anything is decided."""
        if self._recalled:
            return
        self._recalled = True
        for pool in self._store.pools:
            self._heed(pool)

    def _heed(self, pool: Key) -> None:
        """A mark that we know nothing of, or not any more."""
        mark, loan = self._mark_on(pool), self._loans.get(pool)
        if mark is None or (loan is not None and loan.mark == mark):
            return
        self._loans[pool] = _Loan(mark=mark)
        # Of our own, it was not answered that it was set, or that it was taken off.
        if not mark.startswith(self._name):
            self._recall(pool)

    def _recall(self, pool: Key) -> None:
        sandboxes = self._store.sandboxes.of_pool(namespace=pool.namespace, pool=pool.name)
        named = {section(each, "status").get("podUID"): each for each in sandboxes}
        owner = uid_of(self._store.pools.get(pool) or {"metadata": {"uid": ""}})
        for pod in self._store.pods.owned_by(namespace=pool.namespace, uid=owner):
            uid, key = uid_of(pod), key_of(pod)
            self._pods[pool][uid] = key
            if (sandbox := named.get(uid)) is not None:
                self._store.pods.foresee(key, self._metadata(pod, sandbox))
            else:
                self._suspects[uid] = key

    def _metadata(self, pod: Json, sandbox: Json) -> Json:
        name, uid = key_of(sandbox).name, uid_of(sandbox)
        version = section(pod["metadata"], "labels").get(LABEL_VERSION, "")
        return {
            "labels": child_labels(sandbox_name=name, sandbox_uid=uid, version=version),
            "annotations": {ANNOTATION_CLAIMED_AT: format_time(self._now())},
            "ownerReferences": [owner_reference(kind=SANDBOX_KIND, name=name, uid=uid)],
        }

    def _mark_on(self, pool: Key) -> str | None:
        return section(self._store.pools.get(pool) or {}, "status").get("lending")

    def _pod(self, uid: str, key: Key) -> Json | None:
        pod = self._store.pods.get(key)
        return pod if pod is not None and uid_of(pod) == uid else None

    def _is_abandoned(self, pod: Json) -> bool:
        lent = uid_of(pod) in self._store.pods.unwritten
        return lent and "deletionTimestamp" not in pod["metadata"] and not self.serves(pod)

    def _forget(self, pool: Key) -> None:
        """What is over: pods that were told, are somebody's, or are gone, and will not come back."""
        self._suspects = {uid: key for uid, key in self._suspects.items() if not self._is_cleared(uid, key)}
        pods = self._pods.pop(pool, {})
        pods = {uid: key for uid, key in pods.items() if self._is_watched(uid)}
        if pods:
            self._pods[pool] = pods
        if self._store.pools.get(pool) is None:
            self._refused.pop(pool, None)

    def _is_cleared(self, uid: str, key: Key) -> bool:
        pod = self._store.pods.get(key)
        if pod is None:
            # One that has only lost its labels would be seen again.
            return not self._store.pods.knows_deleted(uid)
        return uid_of(pod) != uid or controller(pod["metadata"]).get("kind") == SANDBOX_KIND

    def _is_watched(self, uid: str) -> bool:
        return uid in self._store.pods.unwritten or uid in self._suspects

    def _is_needed(self, pool: Key) -> bool:
        """As long as there is a pod that has yet to be told, or to be replaced."""
        pods = self._pods.get(pool, {})
        return any(self._is_watched(uid) and self._pod(uid, key) is not None for uid, key in pods.items())

    async def _take_off(self, pool: Key) -> None:
        version = section(self._store.pools.get(pool) or {}, "metadata").get("resourceVersion")
        # Of this version only: it must not arrive after another mark was set.
        body: Json = {"metadata": {"resourceVersion": version}, "status": {"lending": None}}
        try:
            await self._patch(pool, body)
        except ApiError as error:
            log.warning("the mark of %s could not be taken off, and is again later: %s", pool, error)

    async def _patch(self, pool: Key, body: Json) -> None:
        try:
            self._store.pools.learn(await self._cluster.patch(f"{POOL.path(*pool)}/status", body))
        except (NotFound, Conflict):
            # It is gone, or was changed: what the watch brings is looked at anew.
            return
