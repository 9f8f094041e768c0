"""What a pool does next, situation by situation."""

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from sandpod_operator.observations import Refusal
from sandpod_operator.pool.decide import PoolPlan, PoolSituation, Volume, decide_pool
from sandpod_operator.pool.share import Share
from sandpod_operator.pool.status import PoolReason
from sandpod_operator.pool.wall import Wall
from sandpod_operator.reasons import Reason

from tests.support.operator_objects import NOW, at, waiting
from tests.support.pool_objects import (
    LIMITS,
    ended,
    later,
    plan,
    pool,
    ready,
    situation,
    starting,
    waiting_pod,
    warm,
)

OLD = {"image": "old:1"}


def decide(situation: PoolSituation) -> PoolPlan:
    names = (f"new-{number}" for number in count())
    return decide_pool(situation, now=NOW, limits=LIMITS, name=lambda: next(names))


def refused(reason: Reason = Reason.QUOTA_EXCEEDED, *, until: float = 5) -> Refusal:
    return Refusal(sandbox_uid="", generation=0, reason=reason, message="no more", retry_at=later(until))


@dataclass
class Row:
    situation: PoolSituation
    creates: int = 0
    removes: list[str] = field(default_factory=list[str])
    counts: tuple[int, int, int, int] | None = None
    ready: tuple[str, str] | None = None
    says: str = ""
    again_in: float | None = None


ROWS = {
    "an empty pool starts its pods, a few at a time": Row(
        situation(pool=pool(6)), creates=4, counts=(0, 0, 0, 0), ready=("False", "Filling")
    ),
    "pods that were asked for count before anybody has seen them": Row(
        situation(pool=pool(6), awaited=3), creates=1, counts=(0, 0, 0, 0), ready=("False", "Filling")
    ),
    "a policy leaves it less than it asks for": Row(
        situation(warm("a"), pool=pool(6), share=Share(policy="limits", most=5, before=3)),
        creates=1,
        counts=(1, 1, 0, 1),
        ready=("False", "WarmPodsLimited"),
        says="allows 5 warm pods in this namespace (maxWarmPods), and the older pools ask for 3: 2 are left",
    ),
    "a policy leaves it nothing any more": Row(
        situation(warm("a"), share=Share(policy="limits", most=5, before=9)),
        removes=["a"],
        counts=(1, 1, 0, 1),
        ready=("False", "WarmPodsLimited"),
    ),
    "a policy leaves it what it asks for": Row(
        situation(warm("a"), warm("b"), share=Share(policy="limits", most=5, before=3)),
        counts=(2, 2, 0, 2),
        ready=("True", "AllReady"),
    ),
    "where a policy limits, one old pod makes way for a new one and there is never one more": Row(
        situation(
            warm("a", template=OLD), warm("b", template=OLD), share=Share(policy="limits", most=2, before=0)
        ),
        creates=1,
        removes=["a"],
        counts=(2, 0, 0, 0),
        ready=("False", "Replacing"),
    ),
    "as many as asked for are warm": Row(
        situation(warm("a"), warm("b")), counts=(2, 2, 0, 2), ready=("True", "AllReady")
    ),
    "while pods start, others wait": Row(
        situation(*(warm(name, status=starting()) for name in "abcd"), pool=pool(6)),
        counts=(4, 0, 4, 4),
        ready=("False", "Filling"),
        again_in=57,
    ),
    "one that was claimed is replaced": Row(
        situation(warm("a"), claimed=1), creates=1, counts=(1, 1, 0, 1), ready=("False", "Filling")
    ),
    "too many: what is not ready goes first, then the youngest": Row(
        situation(
            warm("a", creationTimestamp=at(-90)),
            warm("b", creationTimestamp=at(-80)),
            warm("c", status=starting()),
            pool=pool(1),
        ),
        removes=["c", "b"],
        counts=(3, 2, 1, 3),
        ready=("True", "AllReady"),
        again_in=57,
    ),
    "scaled to zero": Row(
        situation(warm("a"), pool=pool(0)), removes=["a"], counts=(1, 1, 0, 1), ready=("True", "AllReady")
    ),
    "a pod that is going does not count": Row(
        situation(warm("a"), warm("b", deletionTimestamp=at(20))),
        creates=1,
        counts=(1, 1, 0, 1),
        ready=("False", "Filling"),
    ),
    "a pod that had lived for a while and ended is replaced at once": Row(
        situation(warm("a"), warm("b", status=ended(after=65))),
        creates=1,
        removes=["b"],
        counts=(1, 1, 0, 1),
        ready=("False", "Filling"),
    ),
    "a pod that ended at once stays for a while, and nothing takes its place": Row(
        situation(
            *(warm(name, status=ended(after=50), creationTimestamp=at(-70)) for name in "abcd"), pool=pool(9)
        ),
        counts=(0, 0, 0, 0),
        ready=("False", "PodsFail"),
        says="Warm pods do not come up: the runtime exited with code 1; it said: no. Correct the template",
        again_in=40,
    ),
    "after the while it goes, and another is tried": Row(
        situation(*(warm(name, status=ended()) for name in "abcd"), pool=pool(9)),
        creates=4,
        removes=["a", "b", "c", "d"],
        counts=(0, 0, 0, 0),
        ready=("False", "Filling"),
    ),
    "a pod whose node is silent is given up": Row(
        situation(warm("a"), warm("b", status=ready(Ready="False"))),
        creates=1,
        removes=["b"],
        counts=(1, 1, 0, 1),
        ready=("False", "Filling"),
    ),
    "a pod that does not get ready is given up in the end": Row(
        situation(warm("a"), warm("b", status=starting(since=-61))),
        creates=1,
        removes=["b"],
        counts=(1, 1, 0, 1),
        ready=("False", "Filling"),
    ),
    "an image that cannot be pulled": Row(
        situation(
            warm("a", status=waiting("ErrImagePull", "not found")),
            warm("b", status=waiting("ErrImagePull", "not found")),
        ),
        counts=(2, 0, 2, 2),
        ready=("False", "ImageMissing"),
        says="Warm pods cannot start: sandpod/sandbox:0.1.0: not found. The cluster keeps trying.",
    ),
    "a pod that has to reach an age": Row(
        situation(warm("a"), warm("b", status=ready(since=-4)), pool=pool(minReadyAge="10s")),
        counts=(2, 1, 1, 2),
        ready=("False", "Filling"),
        again_in=6,
    ),
    "the API server's no": Row(
        situation(warm("a"), refusal=refused()),
        counts=(1, 1, 0, 1),
        ready=("False", "QuotaExceeded"),
        says="The namespace's quota is used up: no more. Raise the quota, or lower spec.replicas.",
        again_in=5,
    ),
    "after the pause it is tried again, and the reason stands until that works": Row(
        situation(warm("a"), refusal=refused(until=-1)),
        creates=1,
        counts=(1, 1, 0, 1),
        ready=("False", "QuotaExceeded"),
    ),
    "a changed template: one more than wanted, and the old ones stay": Row(
        situation(warm("a", template=OLD), warm("b", template=OLD)),
        creates=1,
        counts=(2, 0, 0, 0),
        ready=("False", "Replacing"),
    ),
    "a changed template: for each new pod that is ready an old one goes": Row(
        situation(warm("a", template=OLD), warm("b", template=OLD), warm("c")),
        creates=1,
        removes=["a"],
        counts=(3, 1, 0, 1),
        ready=("False", "Replacing"),
    ),
    "a changed template: an old one that is not ready is of no use": Row(
        situation(warm("a", template=OLD, status=starting()), warm("b"), warm("c")),
        removes=["a"],
        counts=(3, 2, 1, 2),
        ready=("False", "Replacing"),
        again_in=57,
    ),
    "a changed template, and no quota for one more": Row(
        situation(warm("a", template=OLD), warm("b", template=OLD), refusal=refused()),
        removes=["a"],
        counts=(2, 0, 0, 0),
        ready=("False", "QuotaExceeded"),
        again_in=5,
    ),
    "a changed network is a changed template": Row(
        situation(warm("a", template={"network": {"egress": "None"}}), warm("b")),
        creates=1,
        counts=(2, 1, 0, 1),
        ready=("False", "Replacing"),
    ),
    "what comes with the bind makes no other pod": Row(
        situation(
            warm("a"), warm("b"), blueprint=plan({"env": [{"name": "A", "value": "b"}], "sleepAfter": "1m"})
        ),
        counts=(2, 2, 0, 2),
        ready=("True", "AllReady"),
    ),
    "without its template a pool keeps what it has": Row(
        situation(warm("a"), blueprint=None, problem=(PoolReason.NOT_FOUND, ""), pool=pool(3)),
        counts=(1, 0, 0, 0),
        ready=("False", "NotFound"),
        says="There is no SandboxTemplate python in this namespace.",
    ),
    "a template that a policy does not allow": Row(
        situation(
            warm("a"), blueprint=None, problem=(PoolReason.POLICY_EXCEEDED, "too large."), pool=pool(3)
        ),
        counts=(1, 0, 0, 0),
        ready=("False", "PolicyExceeded"),
        says="The platform team's policy does not allow the pods of the SandboxTemplate python: too large.",
    ),
    "a template that makes no pod": Row(
        situation(blueprint=None, problem=(PoolReason.INVALID_TEMPLATE, "no."), pool=pool(3)),
        counts=(0, 0, 0, 0),
        ready=("False", "InvalidTemplate"),
        says="The SandboxTemplate python does not make a pod: no. Correct it",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_pool_takes_the_next_step(name: str) -> None:
    row = ROWS[name]
    found = decide(row.situation)

    assert len(found.create) == row.creates
    assert [pod.key.name for pod in found.remove] == row.removes
    due = None if found.look_again_at is None else (found.look_again_at - NOW).total_seconds()
    assert due == row.again_in
    assert found.status is not None
    status = found.status
    counts = (status.replicas, status.ready_replicas, status.pending_replicas, status.updated_replicas)
    assert counts == row.counts
    condition = next(each for each in status.conditions if each.type == "Ready")
    assert (condition.status, condition.reason) == row.ready
    assert row.says in condition.message


def test_a_pool_that_is_as_it_should_be_costs_no_write() -> None:
    pods = warm("a"), warm("b")
    status = decide(situation(*pods, claimed=3)).status
    assert status is not None

    again = decide(situation(*pods, claimed=3, pool=pool(status=status.to_json())))

    assert not again.writes


def test_a_pool_that_is_gone_or_going_makes_no_pods() -> None:
    going = pool(5)
    going = going.model_copy(
        update={"metadata": going.metadata.model_copy(update={"deletion_timestamp": NOW})}
    )

    assert not decide(situation(pool=going)).writes
    assert not decide(situation(pool=None)).writes


def test_a_status_of_counts_is_written_once_a_second() -> None:
    found = decide(situation(warm("a"), status_written_at=later(-0.4), pool=pool(1)))

    assert found.status is None
    assert found.look_again_at == later(0.6)


def test_the_status_says_how_to_find_the_pods_that_nobody_has_claimed() -> None:
    status = decide(situation()).status

    assert status is not None
    assert status.selector == f"sandpod.dev/pool-uid={pool().metadata.uid},!sandpod.dev/sandbox-uid"


@pytest.mark.parametrize(
    ("readable", "said"), [(None, None), (True, ("True", "Readable")), (False, ("False", "Withheld"))]
)
def test_a_pool_says_when_its_secrets_are_withheld(readable: bool | None, said: Any) -> None:
    status = decide(situation(readable=readable)).status

    assert status is not None
    found = [(each.status, each.reason) for each in status.conditions if each.type == "SecretsReadable"]
    assert found == ([said] if said else [])


@pytest.mark.parametrize(("started", "creates"), [(None, 1), (-4.9, 0), (-5, 1), (60, 1)])
def test_in_a_burst_of_claims_starts_are_seconds_apart_by_our_own_clock(
    started: float | None, creates: int
) -> None:
    waiting = (warm(name) for name in "abcde")
    burst = situation(
        *waiting,
        pool=pool(20),
        claimed_lately=(later(1),) * 5,
        started_at=later(started) if started is not None else None,
    )

    assert len(decide(burst).create) == creates


def test_a_volume_goes_when_nobody_uses_it() -> None:
    mine, lost = Volume(name="a-workspace", uid="1", used=True), Volume(name="b-workspace", uid="2")

    assert decide(situation(volumes=(mine, lost))).remove_volumes == (lost,)


def test_the_wall_stands_before_the_pods_and_falls_when_nobody_is_behind_it() -> None:
    present = plan().wall["metadata"]["name"]
    walls = (
        Wall(name=present, uid="1", used=False),
        Wall(name="earlier", uid="2", used=False),
        Wall(name="claimed", uid="3", used=True),
    )
    found = decide(situation(walls=walls, fenced=False))

    assert found.wall == plan().wall
    assert [wall.name for wall in found.remove_walls] == ["earlier"]
    assert decide(situation(walls=walls)).wall is None
    # Also of a pool that is gone.
    assert [wall.name for wall in decide(situation(pool=None, blueprint=None, walls=walls)).remove_walls] == [
        present,
        "earlier",
    ]


def test_a_refused_wall_is_not_tried_in_a_loop() -> None:
    assert decide(situation(fenced=False, refusal=refused())).wall is None


def test_a_node_whose_clock_is_ahead_makes_nobody_wait() -> None:
    pod = warm("a", status=ready(since=60))

    assert pod.claimable(now=NOW, min_ready_age=0)
    assert not pod.claimable(now=NOW, min_ready_age=1)


def test_a_clock_that_was_put_back_makes_nobody_wait_for_as_long() -> None:
    """Everything that is known is an hour ahead then."""
    pod = warm("a", status=ready(since=3600))
    told = situation(pod, status_written_at=later(3600))

    assert pod.claimable(now=NOW, min_ready_age=30)
    assert decide(told).status is not None


def test_a_pod_that_was_ready_before_gets_its_time_anew() -> None:
    status = ready(since=-600, Ready="False", ContainersReady="False")
    status["conditions"][1]["lastTransitionTime"] = at(-5)
    pod = warm("a", status=status)

    assert not decide(situation(pod, replace(warm("b")))).remove


def test_new_pods_have_names_of_their_own_and_volumes_beside_them() -> None:
    spec = {"workspace": {"size": "1Gi"}}
    found = decide(situation(blueprint=plan(spec)))

    assert [start.name for start in found.create] == ["new-0", "new-1"]
    claims = [start.claim for start in found.create]
    assert [claim and claim["metadata"]["name"] for claim in claims] == ["new-0-workspace", "new-1-workspace"]
    volumes = waiting_pod(template=spec)["spec"]["volumes"]
    assert volumes[0]["persistentVolumeClaim"] == {"claimName": "python-aaaaa-workspace"}
