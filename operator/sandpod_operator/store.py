"""What the operator knows of the cluster: the newest version seen of everything that it watches, from watches
and from its own writes, and what was observed beside them.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from sandpod_crds.names import LABEL_INSTANCE, LABEL_NETWORK

from .census import Census
from .kinds import (
    CLAIM,
    INGRESS,
    KINDS,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    POLICY,
    POOL,
    SANDBOX,
    TEMPLATE,
    Kind,
)
from .objects import Json, controller, is_left_by_a_pool, key_of, owner_uid, section, uid_of, version_of
from .observations import Answer, Errand, Key, Refusal
from .pods import workspace_claim
from .resources.claim import workspace_name
from .sharing import shared
from .unwritten import Unwritten

# Objects that were deleted are remembered for so many deletions, so that the late answer to a write does not
# bring one back.
TOMBSTONES = 10_000

Index = dict[tuple[str, str], set[Key]]


class Cache:
    """The objects of one kind. Only a newer version replaces one."""

    def __init__(self, *, slim: Callable[[Json], Json], census: Census | None = None) -> None:
        self._slim = slim
        self._census = census
        self._objects: dict[Key, Json] = {}
        # By namespace and UID: an owner is in its children's namespace, whatever UID others may write there.
        self._by_owner: Index = {}
        # What belongs to nobody, by namespace and the name of the sandbox that it was made for.
        self._left: Index = {}
        # What was made for pools and belongs to nobody, by namespace.
        self._left_by_pools: Index = {}
        # Pods, by namespace and the NetworkPolicy that they are behind.
        self._behind: Index = {}
        # Pods, by namespace and the claim that they have as workspace.
        self._mounting: Index = {}
        # By namespace, and nothing else
        self._inside: Index = {}
        # Sandboxes, by namespace and the pool that their status names.
        self._of_pool: Index = {}
        # Sandboxes, by namespace and the claim that their status names, if it has not their own name: then
        # there need not be one yet, or it may be another's.
        self._keeping: Index = {}
        self._deleted: dict[str, None] = {}
        self.unwritten = Unwritten()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._objects))

    def get(self, key: Key) -> Json | None:
        return self._objects.get(key)

    def first(self) -> Json | None:
        """The one that has been known for the longest time."""
        return next(iter(self._objects.values()), None)

    def owned_by(self, *, namespace: str, uid: str) -> list[Json]:
        """The objects in this namespace whose controller has this UID, by name."""
        return [self._objects[key] for key in sorted(self._by_owner.get((namespace, uid), ()))]

    def left_for(self, *, namespace: str, sandbox: str) -> list[Json]:
        """The objects in this namespace that were made for a sandbox of this name and belong to nobody."""
        return [self._objects[key] for key in sorted(self._left.get((namespace, sandbox), ()))]

    def left_by_pools(self, namespace: str) -> list[Json]:
        """The objects in this namespace that were made for pools and belong to nobody, by name."""
        return [self._objects[key] for key in sorted(self._left_by_pools.get((namespace, ""), ()))]

    def is_any_behind(self, network: str, *, namespace: str) -> bool:
        """Whether a policy that selects this network selects a pod in this namespace."""
        return (namespace, network) in self._behind

    def inside(self, namespace: str) -> list[Json]:
        """The objects in this namespace, by name."""
        return [self._objects[key] for key in sorted(self._inside.get((namespace, ""), ()))]

    def of_pool(self, *, namespace: str, pool: str) -> list[Json]:
        """The sandboxes in this namespace that have their pod from this pool, by name."""
        return [self._objects[key] for key in sorted(self._of_pool.get((namespace, pool), ()))]

    def mounting(self, *, namespace: str, claim: str) -> list[Json]:
        """The pods in this namespace whose workspace this claim is, the first one first."""
        found = [self._objects[key] for key in self._mounting.get((namespace, claim), ())]
        return sorted(found, key=lambda pod: (pod["metadata"]["creationTimestamp"], uid_of(pod)))

    def keeping(self, *, namespace: str, claim: str) -> list[Json]:
        """The sandboxes in this namespace whose status names this claim, which has not their own name."""
        return [self._objects[key] for key in sorted(self._keeping.get((namespace, claim), ()))]

    def observe(self, obj: Json) -> bool:
        """An event of a watch says that this object exists."""
        # A pod that left the watch by losing its labels comes back this way.
        self._deleted.pop(uid_of(obj), None)
        return self._put(obj)

    def learn(self, obj: Json) -> bool:
        """A write of ours was answered with this object: the next pass reads it without the watch's delay."""
        return uid_of(obj) not in self._deleted and self._put(obj)

    def foresee(self, key: Key, metadata: Json) -> None:
        """The object has this metadata from now on; that is written to it later."""
        known = self._objects[key]
        self.unwritten.put(known, metadata)
        self._disown(key, known)
        self._keep(key, self.unwritten.complete(known))

    def remove(self, key: Key, *, uid: str) -> bool:
        """This very object is gone; another of the same name stays."""
        self._deleted[uid] = None
        if len(self._deleted) > TOMBSTONES:
            oldest = next(iter(self._deleted))
            # One that has only lost its labels may have come back before, and was still whose it was.
            self.unwritten.drop(oldest)
            del self._deleted[oldest]
        known = self._objects.get(key)
        if known is None or uid_of(known) != uid:
            return False
        self._disown(key, known)
        if self._census is not None:
            self._census.remove(known)
        del self._objects[key]
        return True

    def knows_deleted(self, uid: str) -> bool:
        return uid in self._deleted

    def deletions(self) -> frozenset[str]:
        """The UIDs of what was deleted lately."""
        return frozenset(self._deleted)

    def _put(self, obj: Json) -> bool:
        key = key_of(obj)
        known = self._objects.get(key)
        if known is not None:
            if version_of(known) >= version_of(obj):
                return False
            self._disown(key, known)
        if self._census is not None:
            if known is not None and uid_of(known) != uid_of(obj):
                self._census.remove(known)
            self._census.put(obj)
        self._keep(key, self.unwritten.complete(obj))
        return True

    def _keep(self, key: Key, obj: Json) -> None:
        self._objects[key] = shared(self._slim(obj))
        # Of what is kept of it: it is found there again when it goes.
        for shelf, place in self._places(key, self._objects[key]):
            shelf.setdefault(place, set()).add(key)

    def _disown(self, key: Key, obj: Json) -> None:
        for shelf, place in self._places(key, obj):
            shelf[place].discard(key)
            if not shelf[place]:
                del shelf[place]

    def _places(self, key: Key, obj: Json) -> Iterator[tuple[Index, tuple[str, str]]]:
        metadata = obj["metadata"]
        yield self._inside, (key.namespace, "")
        if is_left_by_a_pool(obj):
            yield self._left_by_pools, (key.namespace, "")
        if pool := section(obj, "status").get("pool"):
            yield self._of_pool, (key.namespace, pool)
        kept = section(obj, "status").get("workspaceClaim")
        if kept not in (None, workspace_name(key.name)):
            yield self._keeping, (key.namespace, kept)
        if (owner := owner_uid(obj)) is not None:
            yield self._by_owner, (key.namespace, owner)
        elif (name := section(metadata, "labels").get(LABEL_INSTANCE)) and not controller(metadata):
            yield self._left, (key.namespace, name)
        if (claim := workspace_claim(obj)) is not None:
            yield self._mounting, (key.namespace, claim)
        if network := section(metadata, "labels").get(LABEL_NETWORK):
            yield self._behind, (key.namespace, network)


def _nobody(key: Key) -> None:
    pass


class Store:
    """`look_at` is told of sandboxes that have to be looked at though nothing has happened to them."""

    def __init__(
        self, *, look_at: Callable[[Key], None] = _nobody, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look_at = look_at
        self._clock = clock
        self.census = Census(moved=self._have_moved)
        self._caches = {
            kind.plural: Cache(slim=kind.slim, census=self.census if kind is SANDBOX else None)
            for kind in KINDS
        }
        self.sandboxes = self.cache(SANDBOX)
        self.pods = self.cache(POD)
        self.claims = self.cache(CLAIM)
        self.network_policies = self.cache(NETWORK_POLICY)
        self.ingresses = self.cache(INGRESS)
        self.templates = self.cache(TEMPLATE)
        self.pools = self.cache(POOL)
        self.policies = self.cache(POLICY)
        self.namespaces = self.cache(NAMESPACE)
        # UIDs of sandboxes whose deletion was seen and whose pods may still be there.
        self._departed: dict[Key, str] = {}
        # By the UID of the pod that gave them.
        self._answers: dict[str, dict[Errand, Answer]] = {}
        # By the UID of the pod. Not by the clock on the wall: put forward, it would give up every start.
        self._asked: dict[str, float] = {}
        # Nodes whose drain has waited long enough for the sandboxes on them.
        self.released_nodes: frozenset[str] = frozenset()
        # By the sandbox and the plural of what was refused.
        self._refusals: dict[Key, dict[str, Refusal]] = {}

    def cache(self, kind: Kind) -> Cache:
        return self._caches[kind.plural]

    def concerned(self, kind: Kind, obj: Json) -> set[Key]:
        """The sandboxes that have to be looked at after an event of this object."""
        return set(kind.concerns(self.cache(kind).unwritten.complete(obj), self.sandboxes))

    def _have_moved(self, namespace: str, number: int) -> None:
        """Said at once, whichever way one has come or gone: an event that comes later would find others gone
        meanwhile, and name the last of those whose turn it is, and nobody else.
        """
        for policy in self.policies:
            most = section(self.policies.get(policy) or {}, "spec").get("maxSandboxes")
            if most is None or number >= most:
                continue
            # The last who may start and the first who may not: one of them could not before, or could.
            for key in (self.census.at(namespace, most - 1), self.census.at(namespace, most)):
                if key is not None:
                    self._look_at(key)

    def deleted(self, kind: Kind, key: Key, *, uid: str) -> None:
        """The API server says that this very object is gone."""
        if kind is SANDBOX:
            self.sandbox_deleted(key, uid=uid)
        elif kind is POD:
            self.pod_deleted(key, uid=uid)
        else:
            self.cache(kind).remove(key, uid=uid)

    def sandbox_deleted(self, key: Key, *, uid: str) -> None:
        self.sandboxes.remove(key, uid=uid)
        self._refusals.pop(key, None)
        if self.pods.owned_by(namespace=key.namespace, uid=uid):
            self._departed[key] = uid

    def pod_deleted(self, key: Key, *, uid: str) -> None:
        known = self.pods.get(key)
        if known is not None and uid_of(known) == uid and uid in self.pods.unwritten:
            owner = controller(known["metadata"])
            # Who brings the news does not know whose it was.
            self._look_at(Key(key.namespace, owner["name"]))
            # It may only have lost its labels: then its sandbox waits for its end. Without one nobody has to
            # know, for no pool lends a pod that is going.
            waits = self.has_sandbox(Key(key.namespace, owner["name"]), uid=owner["uid"])
            if "deletionTimestamp" in known["metadata"] and not waits:
                self.pods.unwritten.drop(uid)
        self.pods.remove(key, uid=uid)
        self._answers.pop(uid, None)
        self._asked.pop(uid, None)
        left_by = owner_uid(known) if known is not None else None
        if left_by is not None and not self.pods.owned_by(namespace=key.namespace, uid=left_by):
            left = (key.namespace, left_by)
            for sandbox in [each for each, uid in self._departed.items() if (each.namespace, uid) == left]:
                del self._departed[sandbox]

    def has_sandbox(self, key: Key, *, uid: str) -> bool:
        """This very one, and not another of its name."""
        found = self.sandboxes.get(key)
        return found is not None and uid_of(found) == uid

    def departed(self, key: Key) -> str | None:
        """The UID of the sandbox of this name that was deleted and has left its pod behind."""
        return self._departed.get(key)

    def answers(self, pod_uid: str) -> dict[Errand, Answer]:
        return self._answers.get(pod_uid, {})

    def asked_for(self, pod_uid: str) -> timedelta | None:
        since = self._asked.get(pod_uid)
        return timedelta(seconds=self._clock() - since) if since is not None else None

    def asking(self, key: Key, *, pod_uid: str, errand: Errand) -> None:
        """What the pod's runtime has answered to this errand before does not count any more."""
        if self._has_pod(key, pod_uid):
            self._asked.setdefault(pod_uid, self._clock())
            self.answers(pod_uid).pop(errand, None)

    def put_answer(self, key: Key, answer: Answer) -> bool:
        """False when the pod is gone: then nobody needs the answer, and nobody would remove it. `key` is the
        sandbox's.
        """
        if not self._has_pod(key, answer.pod_uid):
            return False
        self._answers.setdefault(answer.pod_uid, {})[answer.errand] = answer
        return True

    def refusal(self, key: Key, plural: str = POD.plural) -> Refusal | None:
        return self._refusals.get(key, {}).get(plural)

    def refusals(self, key: Key) -> dict[str, Refusal]:
        return self._refusals.get(key, {})

    def put_refusal(self, key: Key, refusal: Refusal, plural: str = POD.plural) -> None:
        # Of one that went while it was asked for, nobody would remove it.
        if self.has_sandbox(key, uid=refusal.sandbox_uid):
            self._refusals.setdefault(key, {})[plural] = refusal

    def drop_refusal(self, key: Key, plural: str = POD.plural) -> None:
        refused = self._refusals.get(key)
        if refused is not None and refused.pop(plural, None) is not None and not refused:
            del self._refusals[key]

    def _has_pod(self, key: Key, pod_uid: str) -> bool:
        found = [self.pods.get(key)]
        if (sandbox := self.sandboxes.get(key)) is not None:
            found.append(self.named_pod(sandbox))
            found += self.pods.owned_by(namespace=key.namespace, uid=uid_of(sandbox))
        return any(pod is not None and uid_of(pod) == pod_uid for pod in found)

    def named_pod(self, sandbox: Json) -> Json | None:
        """The pod that its status speaks of, whoever owns it."""
        status = section(sandbox, "status")
        pod = self.pods.get(Key(key_of(sandbox).namespace, status.get("podName", "")))
        return pod if pod is not None and uid_of(pod) == status.get("podUID") else None
