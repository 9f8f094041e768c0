"""Warm pods and volumes: whose a claimed pod's files are, also after a sleep."""

from tests.support.operator_world import World
from tests.support.pool_world import (
    calls_about,
    claimed_by,
    filled,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")


async def test_a_workspace_is_the_warm_pods_own_and_becomes_the_sandboxs() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})

    put_sandbox(world)
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]["name"]
    volume = f"/api/v1/namespaces/team/persistentvolumeclaims/{pod}-workspace"
    assert world.status["workspaceClaim"] == f"{pod}-workspace"
    assert world.api.objects[volume]["metadata"]["ownerReferences"][0]["kind"] == "Sandbox"
    # After the user is served
    assert world.api.calls.index(f"PATCH {volume}") > world.api.calls.index(
        calls_about(world, "sandboxes/box/status")[0]
    )
    assert len(calls_about(world, "persistentvolumeclaims", "box-workspace")) == 0


async def test_after_a_sleep_a_sandbox_has_its_own_volume_again_and_no_other() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})
    path = put_sandbox(world)
    await world.settle()
    volume = world.status["workspaceClaim"]

    world.fall_asleep(claimed_by(world)[0]["metadata"]["uid"])
    await world.settle()
    assert ready(world)[0] == "Asleep"
    world.api.change(path, {"metadata": {"annotations": {"sandpod.dev/wake-requested-at": "now"}}})
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"] == "box"
    assert world.status["workspaceClaim"] == volume
    assert world.pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == volume
    assert len(waiting(world)) == 2


async def test_without_a_workspace_a_wake_takes_a_warm_pod_too() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    world.fall_asleep(claimed_by(world)[0]["metadata"]["uid"])
    await world.settle()

    world.api.change(path, {"metadata": {"annotations": {"sandpod.dev/wake-requested-at": "now"}}})
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"].startswith("python-")


async def test_a_retained_volume_of_a_claim_is_found_again_by_nobody_else() -> None:
    template = {"workspace": {"size": "1Gi", "reclaim": "Retain"}}
    world = await filled(World(), template=template)
    path = put_sandbox(world)
    await world.settle()
    volume = f"/api/v1/namespaces/team/persistentvolumeclaims/{world.status['workspaceClaim']}"
    assert "ownerReferences" not in world.api.objects[volume]["metadata"]

    world.api.vanish(path)
    await world.settle()
    await world.wait(700)

    assert volume in world.api.objects
