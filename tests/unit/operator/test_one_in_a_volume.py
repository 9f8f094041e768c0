"""Two sandboxes name one claim, and the pod of the second becomes known when somebody works in the first:
never are two let into one volume.
"""

import copy

import pytest
from sandpod_operator.objects import Json, uid_of
from sandpod_operator.pods import ANNOTATION_POD_HASH

from tests.support.operator_world import CLAIMS_PATH, POD_PATH, SANDBOX_PATH, World, new_sandbox
from tests.support.pool_world import OURS, PODS_PATH, pods, ready

RUNNING = ("Running", "RuntimeAnswers")
DATA: Json = {
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "team"},
    "spec": {"resources": {"requests": {"storage": "1Gi"}}},
}


def older_pod_for(world: World, name: str) -> str:
    """The sandbox "box" works in the claim, and a pod of another is seen only now that was made before."""
    world.api.put(f"{CLAIMS_PATH}/data", DATA)
    world.api.put(SANDBOX_PATH, new_sandbox({"workspace": {"claimName": "data"}}))
    other = new_sandbox({"workspace": {"claimName": "data"}})
    other["metadata"]["name"] = name
    return uid_of(world.api.put(f"{OURS}/sandboxes/{name}", other))


def put_its_pod(world: World, name: str, *, uid: str) -> None:
    """As the answer to a request that has been on its way for long."""
    late = copy.deepcopy(world.pod)
    late["metadata"]["name"] = name
    late["metadata"]["ownerReferences"][0] |= {"name": name, "uid": uid}
    del late["metadata"]["annotations"][ANNOTATION_POD_HASH], late["spec"]["nodeName"]
    world.api.put(f"{PODS_PATH}/{name}", late)
    world.api.change(f"{PODS_PATH}/{name}", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}})


def bound_pods(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(world) if _is_bound(world, pod)]


def _is_bound(world: World, pod: Json) -> bool:
    runtime = world.runtimes.get(uid_of(pod))
    return runtime is not None and runtime.bound


async def test_whoever_works_in_a_claim_keeps_it_when_an_older_pod_of_another_is_seen_late() -> None:
    world = World()
    uid = older_pod_for(world, "other")
    await world.settle()
    assert ready(world) == RUNNING

    put_its_pod(world, "other", uid=uid)
    await world.wait(60)

    assert [ready(world), ready(world, "other")] == [RUNNING, ("Pending", "ClaimInUse")]
    assert bound_pods(world) == ["box"]


@pytest.mark.parametrize("lost", ["started", "setting up"])
async def test_so_it_does_for_an_operator_that_knows_it_from_the_status_only(lost: str) -> None:
    world = World()
    uid = older_pod_for(world, "other")
    if lost == "setting up":
        world.api.change(SANDBOX_PATH, {"spec": {"setup": ["make"]}})
    await world.settle()
    if lost == "setting up":
        status: Json = {"phase": "Starting", "startedAt": None, "setup": {"result": "Running"}}
        world.api.change(SANDBOX_PATH, {"status": status})

    put_its_pod(world, "other", uid=uid)
    world.boot()
    await world.wait(60)

    assert [ready(world), ready(world, "other")] == [RUNNING, ("Pending", "ClaimInUse")]
    assert bound_pods(world) == ["box"]


async def test_nobody_is_let_in_while_one_whom_an_earlier_operator_let_in_may_be_there() -> None:
    world = World()
    uid = older_pod_for(world, "other")
    await world.settle()
    # Killed before it could write that the runtime had answered.
    world.api.change(SANDBOX_PATH, {"status": {"phase": "Starting", "startedAt": None, "setup": None}})
    put_its_pod(world, "other", uid=uid)
    # Its node takes a while to end it.
    world.api.change(POD_PATH, {"metadata": {"finalizers": ["example.com/slow"]}})
    world.boot()
    await world.wait(60)

    assert ready(world, "other") == ("Pending", "ClaimInUse")
    assert bound_pods(world) == ["box"]
    world.api.calls.clear()
    await world.wait(60)
    assert world.api.calls == []

    world.api.vanish(POD_PATH)
    await world.wait(60)
    assert [ready(world), ready(world, "other")] == [("Pending", "ClaimInUse"), RUNNING]
    assert bound_pods(world) == ["other"]
