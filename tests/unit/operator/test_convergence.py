"""The whole way from a Sandbox to a pod that answers, in a small cluster in memory: what is written, and
that it comes out the same wherever the operator is killed on its way.
"""

import pytest
from sandpod_crds.errors import ApiError, Forbidden, Invalid, Unavailable
from sandpod_operator.objects import Json

from tests.support.operator_node import crash_it, hold_it, run_it, run_it_deaf
from tests.support.operator_objects import KEY
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World, new_sandbox

RUNNING = ("Running", "True", "RuntimeAnswers")


async def started(spec: dict[str, object] | None = None) -> World:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox(spec))
    await world.settle()
    assert world.ready() == RUNNING
    return world


async def test_a_cold_start_costs_four_writes_the_wall_first() -> None:
    world = await started()

    assert world.api.calls == [
        "POST /apis/networking.k8s.io/v1/namespaces/team/networkpolicies",
        f"POST {POD_PATH.rpartition('/')[0]}",
        f"PATCH {SANDBOX_PATH}/status",
        f"PATCH {SANDBOX_PATH}/status",
    ]
    assert world.events == []


async def test_a_converged_sandbox_costs_nothing_however_often_it_is_looked_at() -> None:
    world = await started()
    world.api.calls.clear()

    for _ in range(3):
        world.queue.add(KEY)
        await world.settle()
    await world.wait(3600)

    assert world.api.calls == []


async def test_pods_that_somebody_changes_again_and_again_are_replaced_ever_more_slowly() -> None:
    def change_it(world: World, pod: Json) -> None:
        if "deletionTimestamp" not in pod["metadata"]:
            world.api.change(POD_PATH, {"metadata": {"annotations": {"sandpod.dev/pod-hash": "theirs"}}})

    world = World()
    world.kubelet = change_it
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(3600)

    assert len([call for call in world.api.calls if call == f"POST {POD_PATH.rpartition('/')[0]}"]) < 25
    assert len(world.api.calls) < 200


async def test_a_restarted_operator_writes_nothing_and_asks_nobody() -> None:
    world = await started()
    world.api.calls.clear()

    world.boot()
    await world.settle()

    assert world.api.calls == []
    assert world.asker.wanted == {}


async def test_a_pod_deleted_by_hand_comes_back() -> None:
    world = await started()
    await world.wait(100)
    before = world.pod["metadata"]["uid"]

    await world.api.delete(POD_PATH)
    await world.settle()

    assert world.ready() == RUNNING
    assert world.pod["metadata"]["uid"] == world.status["podUID"] != before
    assert world.status["restarts"] == 1
    assert world.events == ["PodDeleted", "Started"]


async def test_a_pod_deleted_by_force_comes_back() -> None:
    world = await started()
    await world.wait(100)

    world.api.vanish(POD_PATH)
    await world.settle()

    assert world.ready() == RUNNING
    assert world.status["restarts"] == 1


async def test_a_deleted_sandbox_takes_its_pod_along() -> None:
    world = await started()

    world.api.vanish(SANDBOX_PATH)
    await world.settle()

    assert POD_PATH not in world.api.objects


async def test_a_new_sandbox_of_an_old_name_gets_a_new_pod() -> None:
    world = await started()
    old = world.pod["metadata"]["uid"]

    world.api.vanish(SANDBOX_PATH)
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.settle()

    assert world.ready() == RUNNING
    assert world.status["podUID"] == world.pod["metadata"]["uid"] != old
    assert "restarts" not in world.status


async def test_a_sandbox_that_crashes_is_tried_ever_more_slowly_and_recovers() -> None:
    world = World()
    world.kubelet = crash_it
    world.api.put(SANDBOX_PATH, new_sandbox())

    await world.wait(30)
    assert world.ready() == ("Failed", "False", "CrashedAtStart")
    assert world.status["startFailures"] == 5

    await world.wait(3600)
    # Hot loops would show here: at most one try in five minutes.
    assert world.status["startFailures"] <= 5 + 4 + 3600 / 300

    world.kubelet = run_it
    await world.wait(300)
    assert world.ready() == RUNNING
    await world.wait(60)
    assert "startFailures" not in world.status


async def test_an_unanswering_runtime_is_given_up_at_the_deadline_and_tried_again() -> None:
    world = World()
    world.kubelet = run_it_deaf
    world.api.put(SANDBOX_PATH, new_sandbox())

    await world.wait(59)
    assert world.ready() == ("Starting", "False", "Starting")
    await world.wait(1.5)
    assert world.status["startFailures"] == 1
    world.kubelet = run_it
    await world.wait(5)

    assert world.ready() == RUNNING


async def test_a_deadline_survives_a_restart_of_the_operator() -> None:
    world = World()
    world.kubelet = run_it_deaf
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(50)

    world.boot()
    await world.wait(9)
    assert world.ready() == ("Starting", "False", "Starting")
    await world.wait(1)

    assert world.status["startFailures"] == 1


async def test_a_missing_image_recovers_by_itself_and_by_another_spec() -> None:
    world = World()
    world.kubelet = hold_it
    world.api.put(SANDBOX_PATH, new_sandbox({"image": "wrong:1"}))
    await world.settle()
    assert world.ready() == ("Pending", "False", "ImageMissing")
    old = world.pod["metadata"]["uid"]

    world.kubelet = run_it
    world.api.change(SANDBOX_PATH, {"spec": {"image": "right:1"}})
    await world.settle()

    assert world.ready() == RUNNING
    assert world.pod["metadata"]["uid"] != old
    assert world.status["image"] == "right:1"
    assert "startFailures" not in world.status


async def test_a_changed_spec_does_not_touch_a_sandbox_that_runs() -> None:
    world = await started({"image": "old:1"})
    uid = world.pod["metadata"]["uid"]

    world.api.change(SANDBOX_PATH, {"spec": {"image": "new:1"}})
    await world.settle()

    assert world.pod["metadata"]["uid"] == uid
    assert condition(world, "SpecHonored")[:2] == ("False", "RestartPending")
    assert "kubectl delete pod box -n team" in condition(world, "SpecHonored")[2]

    await world.wait(100)
    world.api.vanish(POD_PATH)
    await world.settle()
    assert world.status["image"] == "new:1"
    assert condition(world, "SpecHonored")[:2] == ("True", "AllFields")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Forbidden(403, "Forbidden", 'pods "box" is forbidden: exceeded quota: q'), "QuotaExceeded"),
        (Forbidden(403, "Forbidden", 'pods "box" is forbidden: violates PodSecurity "x"'), "PodSecurity"),
        (Forbidden(403, "Forbidden", "no such service account"), "Forbidden"),
        (Invalid(422, "Invalid", "spec.containers[0].name: Required value"), "InvalidPod"),
    ],
)
async def test_a_refused_pod_is_a_condition_and_is_tried_again(error: ApiError, reason: str) -> None:
    world = World()
    world.api.before = lambda number, call: fail(call, "POST", "/pods", error)
    world.api.put(SANDBOX_PATH, new_sandbox())

    await world.settle()
    assert world.ready() == ("Pending", "False", reason)
    assert world.events == [reason]
    posts = world.api.calls.count(f"POST {POD_PATH.rpartition('/')[0]}")
    assert posts == 1

    world.boot()
    await world.settle()
    assert world.api.calls.count(f"POST {POD_PATH.rpartition('/')[0]}") == 1

    world.api.before = lambda number, call: None
    await world.wait(301)
    assert world.ready() == RUNNING


async def test_an_api_server_that_is_away_is_asked_again_and_nothing_is_lost() -> None:
    world = World()
    world.api.before = lambda number, call: fail(call, "", "", Unavailable(503, "Unavailable", "away"))
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(600)
    # No hot loop: the pauses grow up to a minute.
    assert len(world.api.calls) < 30

    world.api.before = lambda number, call: None
    await world.wait(60)

    assert world.ready() == RUNNING


async def test_a_sandbox_in_a_namespace_that_is_deleted_is_left_in_peace() -> None:
    world = World()
    going = Forbidden(
        403, "Forbidden", "it is being terminated", {"causes": [{"reason": "NamespaceTerminating"}]}
    )
    world.api.before = lambda number, call: fail(call, "POST", "/", going)
    world.api.put(SANDBOX_PATH, new_sandbox())

    await world.wait(200)

    assert world.ready() == ("Pending", "False", "NamespaceTerminating")
    # The wall, the status, the event: each is tried once.
    assert len(world.api.calls) == 3


def fail(call: str, verb: str, path: str, error: ApiError) -> None:
    if call.startswith(verb) and path in call:
        raise error


def condition(world: World, kind: str) -> tuple[str, str, str]:
    found = next(c for c in world.status["conditions"] if c["type"] == kind)
    return found["status"], found["reason"], found["message"]
