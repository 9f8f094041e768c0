"""Whose a workspace's claim is, where several may want it: sandboxes of one name after each other, a pool
that goes in the moment of a claim, and a sandbox that names another's.
"""

import copy
from datetime import datetime

import pytest
from sandpod_operator.objects import Json, entries, section, uid_of
from sandpod_operator.observations import Answer, Key
from sandpod_operator.plan import Ask
from sandpod_operator.pods import ANNOTATION_POD_HASH
from sandpod_operator.times import format_time

from tests.support.operator_node import hold_it, run_it
from tests.support.operator_runtime import Runtime
from tests.support.operator_world import CLAIMS_PATH, POD_PATH, SANDBOX_PATH, World, new_sandbox
from tests.support.pool_world import (
    OURS,
    PODS_PATH,
    calls_about,
    claimed_by,
    filled,
    pods,
    put_sandbox,
    ready,
)

RUNNING = ("Running", "RuntimeAnswers")
RETAINED: Json = {"workspace": {"size": "1Gi", "reclaim": "Retain"}}
DELETED: Json = {"workspace": {"size": "1Gi"}}


def workspace(world: World, name: str = "box") -> tuple[str, str, str]:
    status = section(world.api.objects[f"{OURS}/sandboxes/{name}"], "status")
    found = next(each for each in entries(status, "conditions") if each["type"] == "WorkspaceReady")
    return found["status"], found["reason"], found["message"]


def mounted(pod: Json) -> str:
    return pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]


async def retained(*, reclaim: Json = RETAINED) -> tuple[World, str]:
    """A sandbox of a pool is gone, and its claim, which a warm pod brought, is kept."""
    world = await filled(World(), template=reclaim)
    path = put_sandbox(world)
    await world.settle()
    volume = world.status["workspaceClaim"]
    world.api.vanish(path)
    await world.wait(40)
    world.api.calls.clear()
    return world, volume


# A sandbox of the same name


async def test_a_new_sandbox_takes_up_what_an_earlier_one_of_its_name_has_retained_of_a_warm_pod() -> None:
    world, volume = await retained()
    assert f"{CLAIMS_PATH}/{volume}" in world.api.objects

    put_sandbox(world)
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["workspaceClaim"] == volume == mounted(world.pod)
    assert calls_about(world, "POST", "persistentvolumeclaims") == []


async def test_it_finds_it_without_the_pool_too() -> None:
    world, volume = await retained()

    world.api.put(SANDBOX_PATH, new_sandbox(DELETED))
    await world.settle()

    assert ready(world) == RUNNING
    assert mounted(world.pod) == volume
    # It does not retain it.
    assert world.api.objects[f"{CLAIMS_PATH}/{volume}"]["metadata"]["ownerReferences"][0]["name"] == "box"


async def test_a_restarted_operator_finds_it_too() -> None:
    world, volume = await retained()

    world.boot()
    put_sandbox(world)
    await world.settle()

    assert world.status["workspaceClaim"] == volume


async def test_a_sandbox_of_another_name_has_nothing_of_it() -> None:
    world, volume = await retained()

    put_sandbox(world, "other")
    await world.settle()

    assert section(world.api.objects[f"{OURS}/sandboxes/other"], "status")["workspaceClaim"] != volume


async def test_it_waits_until_the_pod_of_the_earlier_one_has_ended() -> None:
    world = await filled(World(), template=RETAINED)
    path = put_sandbox(world)
    await world.settle()
    volume, warm = world.status["workspaceClaim"], claimed_by(world)[0]
    where = f"/api/v1/namespaces/team/pods/{warm['metadata']['name']}"
    held = {"deletionTimestamp": format_time(world.now()), "finalizers": ["example.com/slow"]}
    world.api.change(where, {"metadata": held})
    world.api.vanish(path)
    put_sandbox(world)
    await world.settle()

    assert ready(world) == ("Pending", "ClaimInUse")
    assert POD_PATH not in world.api.objects
    assert workspace(world)[:2] == ("False", "ClaimInUse")

    world.api.vanish(where)
    await world.wait(20)
    assert ready(world) == RUNNING
    assert mounted(world.pod) == volume


# A volume that somebody deletes


def delete_volumes_at(world: World, verb: str, part: str) -> None:
    """Somebody deletes all volumes of the pool after this call, and they go when no pod uses them."""

    def strike(number: int, call: str) -> None:
        if call.startswith(verb) and part in call:
            world.api.after = lambda number, call: None
            for path in [path for path in world.api.objects if path.startswith(f"{CLAIMS_PATH}/python-")]:
                world.api.change(path, {"metadata": {"deletionTimestamp": format_time(world.now())}})

    world.api.after = strike


async def test_nobody_is_let_into_a_volume_that_was_deleted_before_the_bind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await filled(World(), template=DELETED)
    warm = [pod["metadata"]["name"] for pod in pods(world)]
    bound: list[str] = []
    hear = Runtime.hear

    def heard(runtime: Runtime, ask: Ask, *, now: datetime) -> Answer:
        bound.append(ask.pod_name)
        return hear(runtime, ask, now=now)

    monkeypatch.setattr(Runtime, "hear", heard)
    delete_volumes_at(world, "PATCH", "/pods/")

    put_sandbox(world)
    await world.wait(40)

    assert ready(world) == RUNNING
    assert not {*bound} & {*warm}


async def test_whoever_works_in_a_volume_that_is_deleted_is_told() -> None:
    world = await filled(World(), template=DELETED)
    put_sandbox(world)
    await world.wait(40)
    assert workspace(world)[:2] == ("True", "Bound")

    delete_volumes_at(world, "", "")
    world.api.change(SANDBOX_PATH, {"spec": {"sleepAfter": "20m"}})
    await world.settle()

    assert ready(world) == RUNNING
    status, reason, message = workspace(world)
    assert (status, reason) == ("False", "ClaimDeleted")
    assert "Copy what you need elsewhere before." in message
    assert "ClaimDeleted" in world.events


# Another's claim, by name


async def other_names(claim: str, *, first: Json) -> World:
    """There is a sandbox "box", and then another that names this claim."""
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox(first))
    await world.settle()
    sandbox = new_sandbox({"workspace": {"claimName": claim}})
    sandbox["metadata"]["name"] = "other"
    world.api.put(f"{OURS}/sandboxes/other", sandbox)
    await world.settle()
    return world


async def test_a_claim_that_another_sandbox_owns_is_refused_in_words() -> None:
    world = await other_names("box-workspace", first=DELETED)

    assert ready(world, "other") == ("Pending", "ClaimInUse")
    assert workspace(world, "other")[:2] == ("False", "ClaimInUse")
    assert "in use by the Sandbox box" in workspace(world, "other")[2]
    assert [pod["metadata"]["name"] for pod in pods(world)] == ["box"]


async def test_a_claim_that_another_sandbox_retains_is_refused_while_it_lives_and_free_afterwards() -> None:
    world = await other_names("box-workspace", first=RETAINED)
    assert ready(world, "other") == ("Pending", "ClaimInUse")

    world.api.vanish(SANDBOX_PATH)
    await world.wait(60)

    assert ready(world, "other") == RUNNING
    assert [mounted(pod) for pod in pods(world)] == ["box-workspace"]


async def test_to_wait_for_another_to_release_it_costs_no_writes() -> None:
    world = await other_names("box-workspace", first=RETAINED)
    world.api.calls.clear()

    await world.wait(120)

    assert world.api.calls == []


async def test_a_claim_of_a_pools_waiting_pod_is_refused() -> None:
    world = await filled(World(), template=DELETED)
    volume = mounted(pods(world)[0])
    world.api.put(SANDBOX_PATH, new_sandbox({"workspace": {"claimName": volume}}))
    await world.settle()

    assert ready(world) == ("Pending", "ClaimInUse")
    assert "the SandboxPool python" in workspace(world)[2]


async def test_a_sandbox_does_not_take_up_its_volume_while_one_of_another_name_works_in_it() -> None:
    world = await other_names("box-workspace", first=RETAINED)
    world.api.vanish(SANDBOX_PATH)
    await world.wait(60)
    assert ready(world, "other") == RUNNING

    world.api.put(SANDBOX_PATH, new_sandbox(DELETED))
    await world.settle()

    assert ready(world) == ("Pending", "ClaimInUse")
    assert "in use by the pod other" in workspace(world)[2]
    assert ready(world, "other") == RUNNING
    assert workspace(world, "other")[0] == "True"
    assert [pod["metadata"]["name"] for pod in pods(world)] == ["other"]
    # It would go with the one that waits.
    assert "ownerReferences" not in world.api.objects[f"{CLAIMS_PATH}/box-workspace"]["metadata"]

    world.api.vanish(f"{OURS}/sandboxes/other")
    await world.wait(60)
    assert ready(world) == RUNNING


def data(world: World) -> None:
    """A claim of somebody's own."""
    claim: Json = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "team"}}
    world.api.put(f"{CLAIMS_PATH}/data", {**claim, "spec": {"resources": {"requests": {"storage": "1Gi"}}}})


async def test_of_two_sandboxes_that_name_one_claim_the_second_waits_for_the_first() -> None:
    world = World()
    data(world)
    world.api.put(SANDBOX_PATH, new_sandbox({"workspace": {"claimName": "data"}}))
    other = new_sandbox({"workspace": {"claimName": "data"}})
    other["metadata"]["name"] = "other"
    world.api.put(f"{OURS}/sandboxes/other", other)
    await world.settle()

    assert [ready(world), ready(world, "other")] == [RUNNING, ("Pending", "ClaimInUse")]
    assert "in use by the pod box" in workspace(world, "other")[2]

    world.fall_asleep(uid_of(world.pod), reason="idle")
    await world.wait(60)
    assert [world.status["phase"], ready(world, "other")] == ["Asleep", RUNNING]


async def test_of_two_that_have_started_at_once_in_one_claim_only_the_first_goes_on() -> None:
    world = World()
    data(world)
    world.kubelet = hold_it
    world.api.put(SANDBOX_PATH, new_sandbox({"workspace": {"claimName": "data"}}))
    await world.settle()
    other = new_sandbox({"workspace": {"claimName": "data"}, "paused": True})
    other["metadata"]["name"] = "other"
    world.api.put(f"{OURS}/sandboxes/other", other)
    await world.settle()
    twin = copy.deepcopy(world.pod)
    uid = uid_of(world.api.objects[f"{OURS}/sandboxes/other"])
    twin["metadata"]["name"] = "other"
    twin["metadata"]["ownerReferences"][0] |= {"name": "other", "uid": uid}
    # Nobody is to find it outdated.
    del twin["metadata"]["uid"], twin["metadata"]["annotations"][ANNOTATION_POD_HASH]
    world.api.put(f"{PODS_PATH}/other", twin)
    world.api.change(f"{PODS_PATH}/other", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}})
    world.api.change(f"{OURS}/sandboxes/other", {"spec": {"paused": None}})
    world.kubelet = run_it
    await world.wait(20)

    assert [pod["metadata"]["name"] for pod in pods(world)] == ["other"]
    assert [ready(world), ready(world, "other")] == [("Pending", "ClaimInUse"), RUNNING]


async def test_a_claim_of_nobodys_may_be_named() -> None:
    world = await other_names("data", first=DELETED)
    data(world)
    await world.settle()

    assert ready(world, "other") == RUNNING
    assert world.store.claims.get(Key("team", "data")) is None
