"""What a pool does next. Pure: the same situation at the same time gives the same plan, but for the names of
new pods.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sandpod_crds.models import Condition, SandboxPool, SandboxPoolStatus

from ..objects import Json
from ..observations import Key, Refusal
from ..reasons import Reason
from ..refusals import LONGEST_PAUSE
from ..times import still_to_come
from .numbers import Counts, Numbers, reckon
from .pod import Blueprint, Start
from .share import Share
from .status import (
    READY,
    SECRETS_READABLE,
    SENTENCES,
    TEMPLATE_FOUND,
    PoolDraft,
    PoolReason,
    condition_of_ready,
)
from .wall import Wall
from .warm import Use, WarmPod

# Counts change with every claim, and whoever reads them does not need each value.
STATUS_PAUSE = timedelta(seconds=1)
# Between two starts in a burst of claims.
BURST_PAUSE = timedelta(seconds=5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Volume:
    """A PersistentVolumeClaim that came with a warm pod."""

    name: str
    uid: str
    # Somebody is using it, or is about to.
    used: bool = False


@dataclass(frozen=True, kw_only=True)
class PoolSituation:
    """What is known about one pool."""

    key: Key
    pool: SandboxPool | None = None
    # None when no pod can be made, and `problem` says why.
    blueprint: Blueprint | None = None
    problem: tuple[PoolReason, str] | None = None
    # Whose owner is the pool. One that is being claimed at this moment is not among them.
    pods: tuple[WarmPod, ...] = ()
    # The UIDs of those that wait for a volume which will not come.
    bereft: frozenset[str] = frozenset()
    # The UIDs of those of which nobody knows whether they still wait.
    suspects: frozenset[str] = frozenset()
    # Made for it, or for an earlier one of its name, and without an owner.
    strays: tuple[WarmPod, ...] = ()
    # Pods that were asked for and that the Store has not seen.
    awaited: int = 0
    # When the next of them is given up, or the next claim that was not answered.
    awaited_until: datetime | None = None
    # Until when each place is kept of pods that somebody has taken away.
    kept_places: tuple[datetime, ...] = ()
    volumes: tuple[Volume, ...] = ()
    walls: tuple[Wall, ...] = ()
    # The wall of new pods stands as it should.
    fenced: bool = False
    claimed: int = 0
    # Until when each of the last claims counts as one of the present burst.
    claimed_lately: tuple[datetime, ...] = ()
    # When it last began to make a pod, by our own clock.
    started_at: datetime | None = None
    # What a policy leaves for it of the namespace's warm pods; None when nothing limits them.
    share: Share | None = None
    # The API server's no to the last pod that was to be made; of this pool and this template.
    refusal: Refusal | None = None
    # Whether the operator may read what the template's environment refers to; None when it refers to nothing.
    readable: bool | None = None
    status_written_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolPlan:
    """Carried out in the order of the fields."""

    # No pod is made before its wall.
    wall: Json | None = None
    remove: tuple[WarmPod, ...] = ()
    create: tuple[Start, ...] = ()
    status: SandboxPoolStatus | None = None
    # Last: whoever refuses these does not keep pods from being made.
    remove_volumes: tuple[Volume, ...] = ()
    remove_walls: tuple[Wall, ...] = ()
    look_again_at: datetime | None = None

    @property
    def writes(self) -> bool:
        removals = (*self.remove, *self.remove_volumes, *self.remove_walls)
        return bool(self.wall or removals or self.create or self.status)


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolLimits:
    most_starting: int
    start_timeout: float


class _Sorted:
    """The pool's pods by what they are good for, the oldest first."""

    def __init__(self, situation: PoolSituation, pool: SandboxPool, *, now: datetime, limits: PoolLimits):
        self._uses: dict[str, Use] = {}
        for pod in situation.pods:
            use = pod.use(now=now, min_ready_age=pool.spec.min_ready_age, start_timeout=limits.start_timeout)
            lost = use is Use.STARTING and pod.uid in situation.bereft
            suspect = use is not Use.GOING and pod.uid in situation.suspects
            self._uses[pod.uid] = Use.USELESS if lost or suspect else use
        self._pods = sorted(situation.pods, key=lambda pod: (pod.created_at, pod.key))
        # Without one nobody knows which pods are out of date, and none is given up for it.
        self._blueprint = situation.blueprint

    def those(self, use: Use, *, fresh: bool | None = None) -> list[WarmPod]:
        return [
            pod
            for pod in self._pods
            if self._uses[pod.uid] is use and (fresh is None or fresh is self.fresh(pod))
        ]

    def fresh(self, pod: WarmPod) -> bool:
        plan = self._blueprint
        return plan is None or (pod.shape, pod.network) == (plan.shape, plan.network)


def decide_pool(
    situation: PoolSituation, *, now: datetime, limits: PoolLimits, name: Callable[[], str]
) -> PoolPlan:
    pool = situation.pool
    if pool is None or pool.metadata.deletion_timestamp is not None:
        # The garbage collector may come late, or leave them: somebody's finalizer holds the pool, or it is
        # deleted with --cascade=orphan.
        there = [pod for pod in (*situation.pods, *situation.strays) if pod.facts.deleted_at is None]
        return PoolPlan(
            remove=tuple(there),
            remove_volumes=_volumes_to_remove(situation),
            remove_walls=_walls_to_remove(situation),
        )
    pods = _Sorted(situation, pool, now=now, limits=limits)
    counts = _count(situation, pool, pods, now=now, limits=limits)
    numbers = reckon(counts)
    blueprint = situation.blueprint
    status, status_due = _status(situation, pool, pods, counts, now=now)
    times = [
        *(_times(situation, pool, now=now, limits=limits)),
        *([situation.refusal.retry_at] if situation.refusal is not None else []),
        *(each for each in (status_due, situation.awaited_until) if each is not None),
        *situation.claimed_lately[-1:],
        *situation.kept_places,
    ]
    return PoolPlan(
        wall=blueprint.wall if blueprint and not situation.fenced and not counts.refused else None,
        remove=(*situation.strays, *_removals(pods, numbers)),
        remove_volumes=_volumes_to_remove(situation),
        remove_walls=_walls_to_remove(situation),
        create=tuple(blueprint.start(name()) for _ in range(numbers.create)) if blueprint is not None else (),
        status=status,
        look_again_at=min((each for each in times if each > now), default=None),
    )


def _count(
    situation: PoolSituation, pool: SandboxPool, pods: _Sorted, *, now: datetime, limits: PoolLimits
) -> Counts:
    starting, started = pods.those(Use.STARTING, fresh=True), situation.started_at
    refusal = situation.refusal
    refused = (
        refusal is not None and still_to_come(refusal.retry_at, now=now, within=LONGEST_PAUSE) is not None
    )
    no_room = any(
        pod.facts.obstacle is not None and pod.facts.obstacle.reason is Reason.UNSCHEDULABLE
        for pod in starting
    )
    over_quota = refusal is not None and refusal.reason is Reason.QUOTA_EXCEEDED
    share = situation.share
    return Counts(
        wanted=pool.spec.replicas if share is None else min(pool.spec.replicas, share.left),
        fresh_ready=len(pods.those(Use.READY, fresh=True)),
        fresh_starting=len(starting) + situation.awaited,
        old_ready=len(pods.those(Use.READY, fresh=False)),
        old_starting=len(pods.those(Use.STARTING, fresh=False)),
        # A failure of the earlier template says nothing about the present one.
        held=len(pods.those(Use.HELD, fresh=True)) + len(situation.kept_places),
        most_starting=limits.most_starting,
        claims=len(situation.claimed_lately),
        started_lately=started is not None
        and still_to_come(started + BURST_PAUSE, now=now, within=BURST_PAUSE) is not None,
        refused=refused or situation.blueprint is None,
        crowded=no_room or over_quota,
        limited=share is not None,
    )


def _removals(pods: _Sorted, numbers: Numbers) -> Iterator[WarmPod]:
    yield from pods.those(Use.USELESS)
    yield from pods.those(Use.HELD, fresh=False)
    yield from pods.those(Use.STARTING, fresh=False)[: numbers.remove_old_starting]
    yield from pods.those(Use.READY, fresh=False)[: numbers.remove_old_ready]
    # The youngest: the oldest are the next to be claimed.
    yield from pods.those(Use.STARTING, fresh=True)[::-1][: numbers.remove_fresh_starting]
    yield from pods.those(Use.READY, fresh=True)[::-1][: numbers.remove_fresh_ready]


def _volumes_to_remove(situation: PoolSituation) -> tuple[Volume, ...]:
    return tuple(volume for volume in situation.volumes if not volume.used)


def _walls_to_remove(situation: PoolSituation) -> tuple[Wall, ...]:
    plan = situation.blueprint
    present = plan.wall["metadata"]["name"] if plan is not None else None
    return tuple(wall for wall in situation.walls if not wall.used and wall.name != present)


def _times(
    situation: PoolSituation, pool: SandboxPool, *, now: datetime, limits: PoolLimits
) -> Iterator[datetime]:
    for pod in situation.pods:
        due = pod.look_again_at(
            now=now, min_ready_age=pool.spec.min_ready_age, start_timeout=limits.start_timeout
        )
        if due is not None:
            yield due


def _status(
    situation: PoolSituation, pool: SandboxPool, pods: _Sorted, counts: Counts, *, now: datetime
) -> tuple[SandboxPoolStatus | None, datetime | None]:
    """The status to write, or when to see whether there is one."""
    draft = PoolDraft(pool, now=now)
    template = pool.spec.template_ref.name
    reason, detail = situation.problem or (PoolReason.FOUND, "")
    # What a policy forbids has been found.
    found = PoolReason.FOUND if reason is PoolReason.POLICY_EXCEEDED else reason
    draft.say(
        TEMPLATE_FOUND,
        found is PoolReason.FOUND,
        found,
        SENTENCES[found].format(template=template, detail=detail),
    )
    if situation.readable is None:
        draft.unsay(SECRETS_READABLE)
    else:
        readable = PoolReason.READABLE if situation.readable else PoolReason.WITHHELD
        draft.say(SECRETS_READABLE, situation.readable, readable, SENTENCES[readable])
    if situation.problem is not None:
        draft.say(READY, False, reason, SENTENCES[reason].format(template=template, detail=detail))
    else:
        draft.say(READY, *_ready(situation, pool, pods, counts, before=draft.said(READY)))
    there = [pod for use in (Use.READY, Use.STARTING) for pod in pods.those(use)]
    # Nobody but a sandbox that asks for the earlier template could claim an old one.
    ready = counts.fresh_ready if situation.blueprint is not None else 0
    status = draft.finish(
        replicas=len(there),
        ready=ready,
        pending=len(pods.those(Use.STARTING)),
        updated=len([pod for pod in there if pods.fresh(pod)]) if situation.blueprint is not None else 0,
        claimed=situation.claimed,
        template_hash=situation.blueprint.shape if situation.blueprint is not None else None,
    )
    written = situation.status_written_at
    due = still_to_come(written + STATUS_PAUSE, now=now, within=STATUS_PAUSE) if written is not None else None
    return (None, due) if status is not None and due is not None else (status, None)


def _ready(
    situation: PoolSituation, pool: SandboxPool, pods: _Sorted, counts: Counts, *, before: Condition | None
) -> tuple[bool, str, str]:
    share = situation.share
    ended: Sequence[WarmPod] = pods.those(Use.HELD, fresh=True)
    starting: Sequence[WarmPod] = pods.those(Use.STARTING, fresh=True)
    return condition_of_ready(
        ready=counts.fresh_ready,
        wanted=counts.wanted,
        old=counts.old_ready + counts.old_starting,
        refusal=situation.refusal,
        troubles=[(pod.trouble, pod in ended) for pod in (*ended, *starting) if pod.trouble is not None],
        before=before,
        share=share if share is not None and share.left < pool.spec.replicas else None,
        vanished=bool(situation.kept_places),
    )
