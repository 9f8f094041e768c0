"""What the condition WorkspaceReady says of a sandbox's files."""

import pytest
from sandpod_operator.decide import decide
from sandpod_operator.objects import Json, entries, section
from sandpod_operator.observations import Answer, Errand, SetupResult
from sandpod_operator.plan import Plan
from sandpod_operator.situation import Situation

from tests.support.operator_objects import (
    INSTALLATION,
    NOW,
    answer,
    at,
    bound,
    claim,
    pod,
    running,
    sandbox,
    situation,
    starting,
    up,
    written,
)
from tests.support.operator_scenarios import change, create
from tests.support.operator_table import writes
from tests.support.operator_world import CLAIMS_PATH, World
from tests.support.workspace_objects import BIGGER, RUNS, SINCE, THEIRS, VOLUME, runs, sleeps, unready

SETUP: Json = {"setup": ["make"]}


def decided(given: Situation) -> Plan:
    return decide(given, now=NOW, installation=INSTALLATION)


def workspace(plan: Plan) -> tuple[str, str, str]:
    assert plan.status is not None
    found = next(c for c in plan.status.to_json()["conditions"] if c["type"] == "WorkspaceReady")
    return found["status"], found["reason"], found["message"]


def with_spec(spec: Json, pod_status: Json, *claims: Json, answers: tuple[Answer, ...] = ()) -> Plan:
    """What is said of a running sandbox's workspace that was well."""
    status = runs(spec, claims=(claim(),))
    given = situation(sandbox(spec, status), pod(spec, pod_status), claims=claims, answers=answers)
    return decided(given)


GROWN = claim(size="2Gi") | {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}

RAN = runs(VOLUME, claims=(claim(),))

ALWAYS: Json = {"keepAlive": True}


def started(spec: Json, *claims: Json) -> Situation:
    return situation(sandbox(spec, starting()), pod(spec, up()), answer=bound(), claims=claims)


def waits(seconds: float) -> Situation:
    pending = claim(phase="Pending", creationTimestamp=at(-seconds))
    return situation(sandbox(VOLUME), pod(VOLUME), claims=(pending,))


SAID = {
    "bound": ("True", "Bound", started(VOLUME, claim())),
    "bound to a claim of the user's": ("True", "Bound", started(THEIRS)),
    "growing": ("True", "Growing", started(BIGGER, GROWN)),
    "being made": ("False", "Provisioning", waits(29)),
    "waiting for too long": ("False", "ClaimPending", waits(30)),
    "lost": (
        "False",
        "ClaimLost",
        situation(sandbox(VOLUME, RAN), pod(VOLUME, RUNS), claims=(claim(phase="Lost"),)),
    ),
    "being deleted while it runs": (
        "False",
        "ClaimDeleted",
        started(VOLUME, claim(deletionTimestamp=at(-1))),
    ),
    "deleted while it sleeps": (
        "False",
        "ClaimMissing",
        situation(sandbox(VOLUME, sleeps(VOLUME, claims=(claim(),)))),
    ),
    "asked for while it runs": (
        "False",
        "AtNextStart",
        situation(sandbox(VOLUME, running()), pod(status=RUNS)),
    ),
    "none": ("True", "ScratchSpace", started({})),
    "none, and it never sleeps": ("True", "ScratchSpaceKept", started(ALWAYS)),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_workspace_that_is(name: str) -> None:
    *wanted, given = SAID[name]
    assert list(workspace(decided(given))[:2]) == wanted


def test_a_full_disk_is_told_once_and_cleared_when_there_is_room_again() -> None:
    full = answer(Errand.CHECK, subject=SINCE, message="1024 of 1073741824 bytes are free.")
    plan = with_spec(VOLUME, unready(), claim(), answers=(full,))
    assert workspace(plan)[:2] == ("False", "DiskFull")
    assert "1024 of 1073741824 bytes are free." in workspace(plan)[2]
    assert [notice.reason for notice in plan.notices] == ["DiskFull"]
    assert plan.status is not None
    status = plan.status.to_json()

    again = decided(
        situation(sandbox(VOLUME, status), pod(VOLUME, unready()), claims=(claim(),), answer=full)
    )
    assert (writes(again), again.ask) == ([], None)
    # A restarted operator does not take it back before it has asked.
    restarted = decided(situation(sandbox(VOLUME, status), pod(VOLUME, unready()), claims=(claim(),)))
    assert writes(restarted) == []
    assert restarted.ask is not None
    assert restarted.ask.errand is Errand.CHECK

    cleared = decided(situation(sandbox(VOLUME, status), pod(VOLUME, RUNS), claims=(claim(),), answer=full))
    assert workspace(cleared)[:2] == ("True", "Bound")
    assert cleared.notices == ()


def test_a_claim_that_somebody_deletes_is_told_of_before_the_files_are_lost() -> None:
    before = decided(started(VOLUME, claim()))
    assert before.status is not None
    known = before.status.model_dump(mode="json", by_alias=True)
    plan = decided(
        situation(sandbox(VOLUME, known), pod(VOLUME, RUNS), claims=(claim(deletionTimestamp=at(-1)),))
    )

    assert "copy" in workspace(plan)[2].lower()
    assert [notice.reason for notice in plan.notices] == ["ClaimDeleted"]


def test_a_runtime_that_is_not_ready_for_another_reason_has_no_full_disk() -> None:
    plan = with_spec(VOLUME, unready(), claim(), answers=(answer(Errand.CHECK, subject=SINCE),))
    assert (writes(plan), plan.ask) == ([], None)


def test_one_that_stays_unready_is_asked_again_for_its_disk_may_be_full_by_now() -> None:
    had_room = answer(Errand.CHECK, subject=SINCE, ago=60)
    plan = with_spec(VOLUME, unready(), claim(), answers=(had_room,))
    assert plan.ask is not None
    assert plan.ask.errand is Errand.CHECK

    recently = with_spec(VOLUME, unready(), claim(), answers=(answer(Errand.CHECK, subject=SINCE),))
    assert recently.look_again_at is not None
    full = answer(Errand.CHECK, subject=SINCE, message="1024 of 1073741824 bytes are free.", ago=60)
    assert with_spec(VOLUME, unready(), claim(), answers=(full,)).ask is None


def test_a_failed_setup_is_said_of_the_workspace_and_told_once() -> None:
    failed = answer(Errand.SETUP, setup=SetupResult(state="Failed", message="make: no rule"))
    spec = {**VOLUME, **SETUP}
    first = situation(sandbox(spec, starting()), pod(spec, up()), answer=bound(ago=1), claims=(claim(),))
    status = written(first)
    given = situation(sandbox(spec, status), pod(spec, up()), answers=(bound(), failed), claims=(claim(),))
    plan = decided(given)

    assert workspace(plan)[:2] == ("False", "SetupFailed")
    assert "make: no rule" in workspace(plan)[2]
    assert [notice.reason for notice in plan.notices] == ["SetupFailed"]
    assert plan.status is not None
    after = situation(sandbox(spec, plan.status.to_json()), pod(spec, RUNS), claims=(claim(),))
    assert writes(decided(after)) == []


def workspace_said(plan: Plan) -> tuple[str, str, str]:
    assert plan.status is not None
    found = next(each for each in plan.status.conditions if each.type == "WorkspaceReady")
    return found.status, found.reason, found.message


def unwritable() -> Json:
    """The status of a sandbox whose runtime has said so at the bind."""
    first = situation(
        sandbox(VOLUME, starting()),
        pod(VOLUME, up(since=-90)),
        answer=bound(unwritable=True),
        claims=(claim(),),
    )
    return written(first, ago=90)


def test_a_volume_that_nobody_can_write_to_is_told_with_a_remedy_as_soon_as_it_is_bound() -> None:
    given = situation(
        sandbox(VOLUME, starting()),
        pod(VOLUME, up()),
        answer=bound(unwritable=True),
        claims=(claim(),),
    )

    plan = decide(given, now=NOW, installation=INSTALLATION)

    status, reason, message = workspace_said(plan)
    assert (status, reason) == ("False", "Unwritable")
    assert "box-workspace" in message
    assert "use one whose CSI driver does not" in message


def test_a_restarted_operator_does_not_forget_that_a_volume_cannot_be_written_to() -> None:
    given = situation(sandbox(VOLUME, unwritable()), pod(VOLUME, RUNS), claims=(claim(),))

    plan = decide(given, now=NOW, installation=INSTALLATION)

    assert plan.status is None


def test_the_next_start_finds_out_whether_the_volume_can_be_written_to_now() -> None:
    before = {**unwritable(), "startedAt": None}
    given = situation(
        sandbox(VOLUME, before), pod(VOLUME, up()), answer=bound(unwritable=False), claims=(claim(),)
    )

    assert workspace_said(decide(given, now=NOW, installation=INSTALLATION))[:2] == ("True", "Bound")


async def test_a_volume_that_is_asked_to_grow_is_growing_until_it_has_grown() -> None:
    world = World()
    await create(world, VOLUME)
    # Whoever makes volumes grow takes his time.
    world.has_volumes = False
    await change(world, **BIGGER)
    claimed = section(world.api.objects[f"{CLAIMS_PATH}/box-workspace"], "spec")["resources"]
    assert claimed == {"requests": {"storage": "2Gi"}}
    assert (ready_workspace(world), world.ready()[0]) == (("True", "Growing"), "Running")

    world.has_volumes = True
    await world.wait(1)

    assert ready_workspace(world) == ("True", "Bound")
    assert world.status.get("restarts") is None


def ready_workspace(world: World) -> tuple[str, str]:
    found = next(each for each in entries(world.status, "conditions") if each["type"] == "WorkspaceReady")
    return found["status"], found["reason"]
