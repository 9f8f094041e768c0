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
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from sandpod_crds.errors import ApiError, Conflict, NotFound
from sandpod_crds.names import LABEL_VERSION, POOL_KIND, SANDBOX_KIND, child_labels

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
    # Pods that may not have been told yet, by their UID
    pods: dict[str, Key] = field(default_factory=dict[str, Key])


class Lending:
    def __init__(self, *, cluster: Cluster, store: Store, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._store = store
        self._now = now
        self._loans: dict[Key, _Loan] = {}
        # Every mark that we have ever sent begins so.
        self._name = secrets.token_hex(8)
        # By their UID: pods of which nobody knows whether they wait.
        self._suspects: dict[str, Key] = {}
        self._refused: dict[Key, datetime] = {}
        self._recalled = False
        # A mark that is taken off must not arrive after the next one was set. Each for as long as somebody is
        # at it.
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
            mark = f"{self._name}-{secrets.token_hex(4)}"
            try:
                await self._mark(pool, {"status": {"lending": mark}})
            except ApiError as error:
                # Then pods are told at once.
                log.warning("%s could not be marked for a burst of claims: %s", pool, error)
                self._refused[pool] = self._now() + REFUSED_FOR
                return False
            before = self._loans.get(pool)
            self._loans[pool] = _Loan(mark=mark, pods=before.pods if before is not None else {})
            if not self.stands(pool):
                self._refused[pool] = self._now() + REFUSED_FOR
            return self.stands(pool)

    def stands(self, pool: Key) -> bool:
        """Our own mark is on this very pool: one that was made anew under this name has none, and an API
        server that does not know the field has dropped it.
        """
        loan = self._loans.get(pool)
        return loan is not None and loan.mark == self._mark_on(pool) and self._is_ours(loan.mark)

    def lend(self, pod: WarmPod, metadata: Json, *, pool: Key) -> None:
        """The pod is whose this metadata says."""
        self._loans[pool].pods[pod.uid] = pod.key
        self._store.pods.foresee(pod.key, metadata)

    def serves(self, pod: Json) -> bool:
        """It has been lent, to a sandbox that is there."""
        metadata = pod["metadata"]
        if metadata["uid"] not in self._store.pods.unwritten:
            return False
        owner = controller(metadata)
        sandbox = self._store.sandboxes.get(Key(metadata["namespace"], owner["name"]))
        return sandbox is not None and uid_of(sandbox) == owner["uid"]

    def abandoned(self, pool: Key) -> list[Json]:
        """Pods that were lent and whose sandbox is gone. The garbage collector does not know whose they were,
        and who looks after a new sandbox of that name does not either.
        """
        loan = self._loans.get(pool)
        lent = [self._pod(uid, key) for uid, key in loan.pods.items()] if loan is not None else []
        return [pod for pod in lent if pod is not None and self._is_abandoned(pod)]

    def _is_abandoned(self, pod: Json) -> bool:
        lent = uid_of(pod) in self._store.pods.unwritten
        return lent and "deletionTimestamp" not in pod["metadata"] and not self.serves(pod)

    async def tidy(self, pool: Key) -> bool:
        """Take off the mark of a pool all of whose pods say whose they are. Whether it is still needed."""
        self._forget_suspects()
        mark = self._mark_on(pool)
        if mark is not None and pool not in self._loans and self._is_ours(mark):
            # It was not answered that it was set, or that it was taken off.
            self._loans[pool] = _Loan(mark=mark)
        elif mark is not None and not self._is_ours(mark) and not self._knows(pool, mark):
            self._recall(pool, mark)
        loan = self._loans.get(pool)
        if loan is None:
            return False
        if self._is_needed(loan):
            return True
        async with self._marking.setdefault(pool, asyncio.Lock()):
            if self._loans.get(pool) is loan and not self._is_needed(loan):
                del self._loans[pool]
                await self._take_off(pool, loan)
        return False

    def recall(self) -> None:
        """What an earlier operator has lent. Once, with the Store filled and before anything is decided."""
        if self._recalled:
            return
        self._recalled = True
        for pool in self._store.pools:
            if (mark := self._mark_on(pool)) is not None:
                self._recall(pool, mark)

    def _recall(self, pool: Key, mark: str) -> None:
        before = self._loans.get(pool)
        loan = self._loans[pool] = _Loan(mark=mark, pods=before.pods if before is not None else {})
        named = {section(each, "status").get("podUID"): each for each in self._sandboxes_of(pool)}
        owner = uid_of(self._store.pools.get(pool) or {"metadata": {"uid": ""}})
        for pod in self._store.pods.owned_by(namespace=pool.namespace, uid=owner):
            uid, key = uid_of(pod), key_of(pod)
            loan.pods[uid] = key
            if (sandbox := named.get(uid)) is not None:
                self._store.pods.foresee(key, self._metadata(pod, sandbox))
            else:
                self._suspects[uid] = key

    def _sandboxes_of(self, pool: Key) -> list[Json]:
        return self._store.sandboxes.of_pool(namespace=pool.namespace, pool=pool.name)

    def _metadata(self, pod: Json, sandbox: Json) -> Json:
        name, uid = key_of(sandbox).name, uid_of(sandbox)
        version = section(pod["metadata"], "labels").get(LABEL_VERSION, "")
        return {
            "labels": child_labels(sandbox_name=name, sandbox_uid=uid, version=version),
            "annotations": {ANNOTATION_CLAIMED_AT: format_time(self._now())},
            "ownerReferences": [owner_reference(kind=SANDBOX_KIND, name=name, uid=uid)],
        }

    def _knows(self, pool: Key, mark: str) -> bool:
        loan = self._loans.get(pool)
        return loan is not None and loan.mark == mark

    def _is_ours(self, mark: str) -> bool:
        return mark.startswith(self._name)

    def _mark_on(self, pool: Key) -> str | None:
        return section(self._store.pools.get(pool) or {}, "status").get("lending")

    def _pod(self, uid: str, key: Key) -> Json | None:
        pod = self._store.pods.get(key)
        return pod if pod is not None and uid_of(pod) == uid else None

    def _forget_suspects(self) -> None:
        """Those that are gone, and those that turn out to have been somebody's."""
        found = {uid: self._pod(uid, key) for uid, key in self._suspects.items()}
        waiting = {
            uid for uid, pod in found.items() if pod and controller(pod["metadata"]).get("kind") == POOL_KIND
        }
        self._suspects = {uid: key for uid, key in self._suspects.items() if uid in waiting}

    def _is_needed(self, loan: _Loan) -> bool:
        """As long as there is a pod that has yet to be told, or to be replaced."""
        loan.pods = {
            uid: key
            for uid, key in loan.pods.items()
            if self._pod(uid, key) and (uid in self._store.pods.unwritten or uid in self._suspects)
        }
        return bool(loan.pods)

    async def _take_off(self, pool: Key, loan: _Loan) -> None:
        obj = self._store.pools.get(pool)
        if obj is None or self._mark_on(pool) != loan.mark:
            return
        # Of this version only: it must not arrive after another mark was set.
        version = obj["metadata"]["resourceVersion"]
        await self._mark(pool, {"metadata": {"resourceVersion": version}, "status": {"lending": None}})

    async def _mark(self, pool: Key, body: Json) -> None:
        try:
            self._store.pools.learn(await self._cluster.patch(f"{POOL.path(*pool)}/status", body))
        except (NotFound, Conflict):
            # It is gone, or was changed: what the watch brings is looked at anew.
            return
