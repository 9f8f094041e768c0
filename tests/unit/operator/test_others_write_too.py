"""Others who write at the same time: users, other controllers, a sandbox that is deleted and made again."""

from collections.abc import Callable

import pytest
from sandpod_crds.errors import Conflict, Forbidden
from sandpod_crds.names import LABEL_PROTECTED, child_labels
from sandpod_operator.kinds import KINDS, POD
from sandpod_operator.objects import Json, owner_reference, uid_of

from tests.support.operator_node import crash_it, hold_it, run_it, run_it_deaf
from tests.support.operator_objects import KEY
from tests.support.operator_scenarios import VOLUME, create, fall_asleep, with_workspace
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World, new_sandbox
from tests.support.pool_world import PODS_PATH, claimed_by, filled, pods, put_sandbox

MOST_CALLS_A_MINUTE = 6
RUNNING = ("Running", "True", "RuntimeAnswers")


async def test_a_status_never_lands_on_a_newer_sandbox_of_the_name() -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox({"image": "old:1"}))

    def replaced_meanwhile(number: int, call: str) -> None:
        if call == f"PATCH {SANDBOX_PATH}/status" and "status" not in world.sandbox:
            world.api.before = lambda number, call: None
            world.api.vanish(SANDBOX_PATH)
            world.api.put(SANDBOX_PATH, new_sandbox({"image": "new:1"}))

    world.api.before = replaced_meanwhile
    await world.wait(1)

    assert world.ready() == RUNNING
    assert world.status["image"] == "new:1"
    assert world.status["podUID"] == world.pod["metadata"]["uid"]


async def test_a_user_who_writes_at_the_same_time_loses_nothing() -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox())
    writes = iter(range(3))

    def write_meanwhile(number: int, call: str) -> None:
        if call == f"PATCH {SANDBOX_PATH}/status" and (write := next(writes, None)) is not None:
            world.api.change(SANDBOX_PATH, {"metadata": {"annotations": {"count": str(write)}}})

    world.api.before = write_meanwhile
    await world.wait(10)

    assert world.ready() == RUNNING
    assert world.sandbox["metadata"]["annotations"] == {"count": "2"}


async def test_a_pod_of_somebody_else_is_never_touched() -> None:
    world = World()
    theirs = {"kind": "Pod", "metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": {}}
    world.api.put(POD_PATH, {**theirs, "spec": {"nodeName": "node-1"}})
    world.api.put(SANDBOX_PATH, new_sandbox())

    await world.wait(60)

    assert world.ready() == ("Pending", "False", "NameTaken")
    assert not [
        call for call in world.api.calls if call.startswith(("DELETE", "PATCH /api/v1/namespaces/team/pods"))
    ]
    world.api.vanish(POD_PATH)
    await world.wait(300)
    assert world.ready() == RUNNING


ORPHANED: Json = {"metadata": {"ownerReferences": []}}


async def test_a_pod_that_the_garbage_collector_has_orphaned_goes_though_its_sandbox_is_gone() -> None:
    world = World()
    await create(world)

    world.api.change(POD_PATH, ORPHANED)
    world.api.vanish(SANDBOX_PATH)
    await world.wait(60)

    assert POD_PATH not in world.api.objects


async def test_a_claimed_pod_that_was_orphaned_goes_whatever_its_name() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    [claimed] = claimed_by(world)

    world.api.change(f"{PODS_PATH}/{claimed['metadata']['name']}", ORPHANED)
    world.api.vanish(path)
    await world.wait(60)

    assert uid_of(claimed) not in [uid_of(pod) for pod in pods(world)]


async def test_an_orphaned_pod_makes_way_for_the_next_sandbox_of_its_name() -> None:
    world = World()
    await create(world)
    before = uid_of(world.pod)

    world.api.change(POD_PATH, ORPHANED)
    world.api.vanish(SANDBOX_PATH)
    await create(world)
    await world.wait(60)

    assert world.ready() == RUNNING
    assert uid_of(world.pod) != before


async def test_a_pod_of_another_namespace_that_claims_to_be_a_sandbox_s_own_is_left_alone() -> None:
    world = World()
    victim = world.api.put(SANDBOX_PATH, new_sandbox({"env": [{"name": "TOKEN", "value": "secret"}]}))
    owner = owner_reference(kind="Sandbox", name=KEY.name, uid=uid_of(victim))
    labels = child_labels(sandbox_name=KEY.name, sandbox_uid=uid_of(victim), version="0.1.0")
    metadata = {
        "name": KEY.name,
        "namespace": "attacker",
        "ownerReferences": [owner],
        "labels": labels,
    }
    body = {"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"image": "trap:1"}]}}
    trap = world.api.put("/api/v1/namespaces/attacker/pods/box", body)
    run_it(world, trap)

    await world.wait(100)
    assert world.ready() == RUNNING
    assert world.status["podUID"] == uid_of(world.pod) != uid_of(trap)
    world.api.calls.clear()
    world.api.change("/api/v1/namespaces/attacker/pods/box", {"metadata": {"annotations": {"try": "again"}}})
    await world.wait(100)

    assert world.ready() == RUNNING
    assert world.api.calls == []
    assert not world.runtimes[uid_of(trap)].bound


@pytest.mark.parametrize(
    ("refused", "change"),
    [
        ("persistentvolumeclaims", {"workspace": {"size": "2Gi"}}),
        ("networkpolicies", {"network": {"egress": "None"}}),
    ],
)
async def test_what_a_running_sandbox_is_refused_is_tried_again_but_not_often(
    refused: str, change: Json
) -> None:
    world = await with_workspace()
    refuse(world, refused)
    world.api.change(SANDBOX_PATH, {"spec": change})
    await world.wait(60)
    world.api.calls.clear()

    await world.wait(3600)
    assert world.status["phase"] == "Running"
    assert 0 < len(world.api.calls) <= MOST_CALLS_A_MINUTE * 60

    world.api.before = lambda number, call: None
    await world.wait(301)
    world.api.calls.clear()
    await world.wait(3600)
    assert world.api.calls == []


async def test_that_a_running_pods_labels_may_not_be_changed_is_no_obstacle_to_the_next_pod() -> None:
    world = await with_workspace()
    # So long that its end is followed by a start at once.
    await world.wait(90)
    refuse(world, "pods")
    world.api.change(SANDBOX_PATH, {"spec": {"keepAlive": True}})
    await world.settle()
    assert world.pod["metadata"]["labels"][LABEL_PROTECTED] == "true"

    world.api.vanish(POD_PATH)
    await world.settle()

    assert world.ready() == RUNNING


async def test_a_label_that_was_refused_is_tried_again_by_itself() -> None:
    world = await with_workspace()
    refuse(world, "pods")
    world.api.change(SANDBOX_PATH, {"spec": {"keepAlive": True}})
    await world.wait(2)

    world.api.before = lambda number, call: None
    await world.wait(60)

    assert LABEL_PROTECTED not in world.pod["metadata"]["labels"]


@pytest.mark.parametrize("kubelet", [crash_it, run_it_deaf, hold_it])
async def test_a_sandbox_that_cannot_start_costs_little(kubelet: Callable[[World, Json], None]) -> None:
    world = World()
    world.kubelet = kubelet
    await create(world)
    await world.wait(1200)
    world.api.calls.clear()
    await world.wait(3600)

    assert len(world.api.calls) <= MOST_CALLS_A_MINUTE * 60


async def test_a_change_of_mind_while_the_runtime_is_told_leaves_it_with_the_last_word() -> None:
    world = await with_workspace()
    runtime = world.runtimes[world.status["podUID"]]

    world.api.change(SANDBOX_PATH, {"spec": {"sleepAfter": "5m"}})
    world.see()
    await world.reconciler.attempt(await world.queue.get())
    world.queue.done(KEY)
    # It is told, and its answer is lost: the wish has changed before.
    runtime.hear(world.asker.wanted[KEY], now=world.now())
    world.api.change(SANDBOX_PATH, {"spec": {"sleepAfter": None}})
    await world.settle()

    assert runtime.sleep_after == 600
    assert world.status["sleepAfter"] == "10m"


def refuse(world: World, path: str) -> None:
    def no(_: int, call: str) -> None:
        if call.startswith(("PATCH", "APPLY")) and f"/{path}/" in call:
            raise Forbidden(403, "Forbidden", "not allowed")

    world.api.before = no


async def test_a_deletion_that_fails_for_a_moment_is_no_deletion() -> None:
    world = World()
    world.kubelet = crash_it
    failures = iter(range(2))

    def conflict(_: int, call: str) -> None:
        if call.startswith("DELETE") and next(failures, None) is not None:
            raise Conflict(409, "Conflict", "the object has been modified")

    world.api.before = conflict
    await create(world)
    world.kubelet = run_it
    await world.wait(60)

    assert world.ready() == RUNNING
    assert len(world.api.calls) < 60


async def test_a_pod_that_was_believed_gone_is_found_again() -> None:
    world = World()
    await create(world)
    world.store.deleted(POD, KEY, uid=uid_of(world.pod))
    world.queue.add(KEY)
    world.api.calls.clear()
    await world.wait(60)

    assert world.ready() == RUNNING
    assert len(world.api.calls) < 15


async def test_a_wake_that_comes_just_before_the_end_of_a_long_sleep_saves_the_sandbox() -> None:
    world = World()
    await create(world, {**VOLUME, "lifetime": {"deleteAfterAsleep": "100s"}})
    await fall_asleep(world)

    def wake_first(_: int, call: str) -> None:
        if call == f"DELETE {SANDBOX_PATH}":
            world.api.before = lambda number, call: None
            world.ask_awake("just in time")

    world.api.before = wake_first
    await world.wait(100)

    assert world.api.calls.count(f"DELETE {SANDBOX_PATH}") == 1
    assert world.ready() == RUNNING


async def test_a_sandbox_whose_deletion_the_watch_did_not_tell_costs_little_and_leaves_nothing() -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox(VOLUME))
    world.see()
    world.api.vanish(SANDBOX_PATH)
    world.list_again()
    await world.wait(60)

    assert [path for path in world.api.objects if "/events/" not in path] == []
    assert len(world.api.calls) < 10 + len(KINDS)
