"""What is counted of the lives of sandboxes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sandpod_crds.models import Sandbox, SandboxStatus
from sandpod_crds.names import ANNOTATION_WAKE
from sandpod_operator.kinds import POLICY
from sandpod_operator.progress import MOST_BEGUN, WITH_OTHERS, Progress
from sandpod_operator.reasons import Reason
from sandpod_operator.refusals import PAUSES

from tests.support.operator_scenarios import create
from tests.support.operator_world import World

NOW = datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)
CREATED = "2026-01-02T03:04:05Z"


def sandbox(*, wake: str | None = None, uid: str = "u-1", **status: Any) -> Sandbox:
    annotations = {} if wake is None else {ANNOTATION_WAKE: wake}
    metadata = {"name": "box", "uid": uid, "creationTimestamp": CREATED, "annotations": annotations}
    return Sandbox.model_validate({"metadata": metadata, "spec": {}, "status": status})


def status(**fields: Any) -> SandboxStatus:
    return SandboxStatus.model_validate(fields)


def running(pod: str = "p-1", **fields: Any) -> dict[str, Any]:
    return {"phase": "Running", "podUid": pod, "startedAt": "2026-01-02T03:04:06Z", **fields}


def lost(reason: str, **fields: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": "False", "reason": reason}], **fields}


@pytest.fixture
def progress() -> Progress:
    return Progress(namespace="test")


def seconds(progress: Progress, kind: str) -> float:
    line = next(
        line for line in progress.starts.lines() if line.startswith(f'test_start_seconds_sum{{kind="{kind}"')
    )
    return float(line.split()[-1])


def test_a_cold_start_counts_from_the_first_look(progress: Progress) -> None:
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(phase="Starting"), now=NOW + timedelta(milliseconds=20))
    progress.record(sandbox(phase="Starting"), status(**running()), now=NOW + timedelta(milliseconds=600))

    assert seconds(progress, "cold") == pytest.approx(0.6)


def test_a_first_look_that_comes_late_does_not_make_a_start_shorter(progress: Progress) -> None:
    progress.see(sandbox(), now=NOW + timedelta(seconds=60))
    progress.record(sandbox(), status(**running()), now=NOW + timedelta(seconds=61))

    assert seconds(progress, "cold") == pytest.approx(60.25)


def test_a_start_with_a_pod_out_of_a_pool_is_a_warm_one(progress: Progress) -> None:
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(**running(pool="tools")), now=NOW)

    assert progress.starts.count(kind="warm") == 1
    assert progress.starts.count(kind="cold") == 0


@pytest.mark.parametrize(
    ("wake", "took"),
    [
        ("2026-01-02T03:04:04.250Z", 1.5),
        ("2026-01-01T00:00:00Z", 2.75),  # from before it fell asleep
        ("2027-01-01T00:00:00Z", 0.5),  # by a clock that is ahead
        ("2026-01-02T03:04:04", 0.5),
        ("now, please", 0.5),
    ],
)
def test_a_wake_counts_from_its_request(progress: Progress, wake: str, took: float) -> None:
    asleep = sandbox(wake=wake, phase="Asleep", asleepSince="2026-01-02T03:04:03Z")
    progress.record(asleep, status(phase="Starting", wakes=1), now=NOW)
    progress.record(
        sandbox(wake=wake, phase="Starting", wakes=1),
        status(**running(wakes=1)),
        now=NOW + timedelta(seconds=0.5),
    )

    assert seconds(progress, "wake") == pytest.approx(took)
    assert progress.wakes.value() == 1


def test_a_wake_in_the_moment_of_falling_asleep_is_one_too(progress: Progress) -> None:
    awake = sandbox(wake="2026-01-02T03:04:04.250Z", **running())
    progress.record(awake, status(phase="Starting", wakes=1), now=NOW)
    progress.record(
        sandbox(phase="Starting", wakes=1),
        status(**running("p-2", wakes=1)),
        now=NOW + timedelta(seconds=0.5),
    )

    assert seconds(progress, "wake") == pytest.approx(1.5)
    assert progress.wakes.value() == 1


def test_a_pod_that_a_changed_spec_replaces_is_no_loss(progress: Progress) -> None:
    progress.record(
        sandbox(phase="Starting"), status(**lost("Replaced", phase="Pending", startFailures=1)), now=NOW
    )

    assert progress.losses.value() == 0


def test_falling_asleep_is_counted_once_and_by_reason(progress: Progress) -> None:
    progress.record(sandbox(**running()), status(phase="Asleep", sleepReason="Idle"), now=NOW)
    progress.record(
        sandbox(phase="Asleep", sleepReason="Idle"), status(phase="Asleep", sleepReason="Paused"), now=NOW
    )

    assert progress.sleeps.value() == progress.sleeps.value(reason="Idle") == 1


def test_a_lost_pod_is_counted_by_reason_and_its_next_start_from_the_loss(progress: Progress) -> None:
    progress.record(sandbox(**running()), status(**lost("Evicted", phase="Starting", restarts=1)), now=NOW)
    progress.record(
        sandbox(phase="Starting", restarts=1),
        status(**running("p-2", restarts=1)),
        now=NOW + timedelta(seconds=2),
    )

    assert progress.losses.value(reason="Evicted") == 1
    assert seconds(progress, "again") == pytest.approx(2)


def test_a_start_that_fails_at_first_counts_from_its_cause(progress: Progress) -> None:
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(**lost("ImageMissing", phase="Pending", startFailures=1)), now=NOW)
    progress.record(
        sandbox(phase="Pending", startFailures=1), status(**running()), now=NOW + timedelta(seconds=9)
    )

    assert seconds(progress, "cold") == pytest.approx(9)


HOURS = timedelta(hours=2)


@pytest.mark.parametrize("reason", sorted(WITH_OTHERS))
def test_what_others_keep_waiting_is_no_slow_start(progress: Progress, reason: str) -> None:
    waits = lost(reason, phase="Pending")
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(**waits), now=NOW + timedelta(seconds=1))
    progress.record(sandbox(**waits), status(**waits, wakes=0), now=NOW + timedelta(seconds=60))
    progress.record(sandbox(**waits), status(phase="Starting"), now=NOW + HOURS)
    progress.record(sandbox(phase="Starting"), status(**running()), now=NOW + HOURS + timedelta(seconds=2))

    assert seconds(progress, "cold") == pytest.approx(3)


def test_nor_is_it_one_of_a_sandbox_that_was_asked_awake(progress: Progress) -> None:
    asleep = {"phase": "Asleep", "asleepSince": "2026-01-02T03:04:03Z"}
    waits = lost("QuotaExceeded", phase="Pending", asleepSince="2026-01-02T03:04:05Z")
    wake = "2026-01-02T03:04:04Z"
    progress.record(sandbox(wake=wake, **asleep), status(**waits), now=NOW)
    progress.record(sandbox(wake=wake, **waits), status(phase="Starting", wakes=1), now=NOW + HOURS)
    progress.record(
        sandbox(phase="Starting", wakes=1),
        status(**running(wakes=1)),
        now=NOW + HOURS + timedelta(seconds=2),
    )

    assert seconds(progress, "wake") == pytest.approx(2)


def test_the_commands_of_a_setup_are_no_slow_start(progress: Progress) -> None:
    setup = lost("SettingUp", phase="Starting", podUid="p-1")
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(phase="Starting"), now=NOW)
    progress.record(sandbox(phase="Starting"), status(**setup), now=NOW + timedelta(seconds=5))
    progress.record(sandbox(**setup), status(**running()), now=NOW + timedelta(seconds=900))

    assert seconds(progress, "cold") == pytest.approx(5)


@pytest.mark.parametrize("reason", ["Unschedulable", "ClaimPending", "ImageMissing", "StartingSlowly"])
def test_an_obstacle_of_a_start_under_way_counts(progress: Progress, reason: str) -> None:
    held = lost(reason, phase="Pending", podUid="p-1")
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(**held), now=NOW)
    progress.record(sandbox(**held), status(phase="Starting"), now=NOW + timedelta(seconds=300))
    progress.record(sandbox(phase="Starting"), status(**running()), now=NOW + timedelta(seconds=302))

    assert seconds(progress, "cold") == pytest.approx(302)


@pytest.mark.parametrize(
    ("held", "corrected"),
    [
        (
            lost("ImageMissing", phase="Pending", podUid="p-1"),
            lost("Replaced", phase="Starting", observedGeneration=2),
        ),
        (
            lost("CrashedAtStart", phase="Failed", startFailures=9),
            {"phase": "Starting", "podUid": "p-2", "startFailures": 9, "observedGeneration": 2},
        ),
        (
            lost("CrashedAtStart", phase="Failed", startFailures=9),
            lost("PolicyExceeded", phase="Pending", startFailures=9, observedGeneration=2),
        ),
    ],
)
def test_a_spec_that_was_corrected_is_a_start_of_its_own(
    progress: Progress, held: dict[str, Any], corrected: dict[str, Any]
) -> None:
    held = {**held, "observedGeneration": 1}
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(**held), now=NOW)
    progress.record(sandbox(**held), status(**corrected), now=NOW + HOURS)
    progress.record(sandbox(**corrected), status(phase="Starting"), now=NOW + HOURS)
    progress.record(sandbox(phase="Starting"), status(**running()), now=NOW + HOURS + timedelta(seconds=2))

    assert seconds(progress, "cold") == pytest.approx(2)


def test_a_start_that_nobody_saw_leave_a_wait_is_not_measured(progress: Progress) -> None:
    waits = lost("PolicyExceeded", phase="Pending")
    progress.see(sandbox(), now=NOW)
    progress.record(sandbox(), status(**waits), now=NOW)
    progress.record(sandbox(**waits), status(**running(pool="tools")), now=NOW + HOURS)

    assert progress.starts.count() == 0


def test_no_refusal_of_what_a_start_needs_counts() -> None:
    previews = {Reason.INGRESS_TAKEN, Reason.INGRESS_REFUSED}

    assert set(PAUSES) - previews <= WITH_OTHERS


async def test_a_sandbox_whose_turn_comes_late_starts_as_fast_as_any() -> None:
    world = World()
    policy = POLICY.path(name="students")
    world.api.put("/api/v1/namespaces/team", {"kind": "Namespace", "metadata": {"name": "team"}})
    rule = {"kind": "SandboxPolicy", "metadata": {"name": "students"}, "spec": {"maxSandboxes": 0}}
    world.api.put(policy, rule)
    await create(world)
    assert world.ready() == ("Pending", "False", "PolicyExceeded")
    await world.wait(HOURS.total_seconds())
    world.api.vanish(policy)
    await world.wait(5)

    assert world.ready() == ("Running", "True", "RuntimeAnswers")
    starts = world.metrics.progress.starts
    assert starts.count(kind="cold") == 1
    assert next(line for line in starts.lines() if 'le="10"' in line).endswith(" 1")


def test_a_start_whose_beginning_nobody_saw_is_not_measured(progress: Progress) -> None:
    progress.record(sandbox(phase="Starting"), status(**running()), now=NOW)

    assert progress.starts.count() == 0


def test_a_status_that_says_the_same_counts_nothing(progress: Progress) -> None:
    progress.record(sandbox(**running()), status(**running()), now=NOW)

    assert [line for series in progress.series for line in series.lines() if not line.startswith("#")] == []


def test_starts_that_never_end_are_forgotten(progress: Progress) -> None:
    for number in range(MOST_BEGUN + 1):
        progress.see(sandbox(uid=f"u-{number}"), now=NOW)
    progress.record(sandbox(uid="u-0", phase="Starting"), status(**running()), now=NOW)
    progress.record(sandbox(uid="u-1", phase="Starting"), status(**running()), now=NOW)

    assert progress.starts.count() == 1
