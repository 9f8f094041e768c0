"""What a warm pod's object says, in the words of the pool: whether it can be claimed, is on its way there, or
is of no use any more. Pure.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sandpod_crds.models import SandboxPool

from ..objects import Json, entries, section, uid_of
from ..observations import Key
from ..pod_ends import Trouble
from ..pods import PodFacts, facts
from ..store import Store
from ..times import SKEW, parse_time, still_to_come

# A pod that ended sooner after its creation would most likely do so again.
STABLE = timedelta(seconds=60)
# So long it is kept then, for whoever looks at its log, and nothing takes its place.
HELD = timedelta(seconds=60)
# A node that has not brought a pod to run within so long, and does not say why, may never do so. A large
# image takes minutes, and another pod would pull it from the beginning.
LONGEST_WAY = timedelta(minutes=15)


class Use(StrEnum):
    READY = "Ready"
    STARTING = "Starting"
    HELD = "Held"
    # To be removed.
    USELESS = "Useless"
    # Is being removed.
    GOING = "Going"


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmPod:
    """A pod whose owner is the pool."""

    key: Key
    uid: str
    version: str
    created_at: datetime
    ready_since: datetime | None
    ended_at: datetime | None
    facts: PodFacts

    def is_of(self, obj: Json) -> bool:
        """It was read from this version of the object."""
        return (self.uid, self.version) == (uid_of(obj), obj["metadata"]["resourceVersion"])

    @property
    def shape(self) -> str:
        return self.facts.shape

    @property
    def network(self) -> str:
        return self.facts.network_uid

    @property
    def trouble(self) -> Trouble | None:
        return self.facts.end or self.facts.obstacle

    def of_age_at(self, *, min_ready_age: float) -> datetime | None:
        """When it can be claimed; None while it is not ready."""
        return self.ready_since + timedelta(seconds=min_ready_age) if self.ready_since else None

    def claimable(self, *, now: datetime, min_ready_age: float) -> bool:
        return self.use(now=now, min_ready_age=min_ready_age, start_timeout=0) is Use.READY

    def use(self, *, now: datetime, min_ready_age: float, start_timeout: float) -> Use:
        found = self.facts
        if found.deleted_at is not None:
            return Use.GOING
        if self.ended_at is not None:
            early = self.ended_at - self.created_at < STABLE
            held = early and still_to_come(self.ended_at + HELD, now=now, within=HELD + SKEW) is not None
            return Use.HELD if held else Use.USELESS
        if not found.node_responds:
            return Use.USELESS
        due = self.of_age_at(min_ready_age=min_ready_age)
        if due is not None:
            # Without an age to reach, a node whose clock is ahead of ours makes nobody wait.
            age = timedelta(seconds=min_ready_age)
            young = age and still_to_come(due, now=now, within=age + SKEW) is not None
            return Use.STARTING if young else Use.READY
        overdue = self._overdue_at(start_timeout=start_timeout)
        if overdue is None:
            return Use.STARTING
        longest = max(timedelta(seconds=start_timeout), LONGEST_WAY) + SKEW
        return Use.STARTING if still_to_come(overdue, now=now, within=longest) is not None else Use.USELESS

    def look_again_at(self, *, now: datetime, min_ready_age: float, start_timeout: float) -> datetime | None:
        """When the passing of time alone makes it something else."""
        use = self.use(now=now, min_ready_age=min_ready_age, start_timeout=start_timeout)
        if use is Use.HELD and self.ended_at is not None:
            return self.ended_at + HELD
        if use is not Use.STARTING:
            return None
        due = self.of_age_at(min_ready_age=min_ready_age)
        return due if due is not None else self._overdue_at(start_timeout=start_timeout)

    def _overdue_at(self, *, start_timeout: float) -> datetime | None:
        """When a pod that is not ready has had its time. One that was ready before gets it anew: on a node
        that has no CPU to spare for the kubelet's questions, another pod would do no better.
        """
        found, longest = self.facts, timedelta(seconds=start_timeout)
        if found.running_since is None:
            stuck = found.node is not None and found.obstacle is None
            return found.under_way_since + max(longest, LONGEST_WAY) if stuck else None
        since = found.running_since
        if found.unready_since:
            since = max(since, parse_time(found.unready_since))
        return since + longest


def warm_pod(obj: Json) -> WarmPod:
    metadata, found = obj["metadata"], facts(obj)
    return WarmPod(
        key=Key(metadata["namespace"], metadata["name"]),
        uid=found.uid,
        version=metadata["resourceVersion"],
        created_at=parse_time(metadata["creationTimestamp"]),
        ready_since=_ready_since(obj) if found.running_since is not None else None,
        ended_at=_ended_at(obj) if found.end is not None else None,
        facts=found,
    )


class WarmPods:
    """The waiting pods of each pool. A pod's object is read once for each of its versions: pools are looked
    at far more often than their pods change.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # By the pool, and by the pod's UID
        self._read: dict[Key, dict[str, WarmPod]] = {}

    def of(self, pool: SandboxPool) -> list[WarmPod]:
        metadata = pool.metadata
        key = Key(metadata.namespace, metadata.name)
        before = self._read.get(key, {})
        owned = self._store.pods.owned_by(namespace=key.namespace, uid=metadata.uid)
        pods = [_up_to_date(before.get(uid_of(obj)), obj) for obj in owned]
        self._read[key] = {pod.uid: pod for pod in pods}
        return pods

    def forget(self, pool: Key) -> None:
        """It is gone."""
        self._read.pop(pool, None)


def _up_to_date(read: WarmPod | None, obj: Json) -> WarmPod:
    return read if read is not None and read.is_of(obj) else warm_pod(obj)


def _ready_since(obj: Json) -> datetime | None:
    ready = _condition(obj, "Ready")
    if ready.get("status") != "True":
        return None
    return parse_time(ready.get("lastTransitionTime") or obj["metadata"]["creationTimestamp"])


def _ended_at(obj: Json) -> datetime:
    """Of an evicted pod, nobody says when its container ended."""
    ends = [
        section(section(each, "state"), "terminated").get("finishedAt")
        for each in entries(section(obj, "status"), "containerStatuses")
    ]
    said = next((end for end in ends if end), None) or _condition(obj, "Ready").get("lastTransitionTime")
    return parse_time(said or obj["metadata"]["creationTimestamp"])


def _condition(obj: Json, kind: str) -> Json:
    conditions = entries(section(obj, "status"), "conditions")
    return next((each for each in conditions if each["type"] == kind), Json())
