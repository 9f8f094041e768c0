"""Warm pods and volumes: whose a claimed pod's files are, also after a sleep."""

from sandpod_crds.errors import Forbidden
from sandpod_operator.objects import entries, uid_of
from sandpod_operator.workspace import KEPT_BY_ITS_POD

from tests.support.operator_world import CLAIMS_PATH, World
from tests.support.pool_world import (
    calls_about,
    claimed_by,
    filled,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")


def keepers(world: World, volume: str) -> list[str]:
    """The kinds of those that it goes with when all of them are gone."""
    metadata = world.api.objects[volume]["metadata"]
    return [owner["kind"] for owner in entries(metadata, "ownerReferences")]


async def test_a_workspace_is_the_warm_pods_own_and_becomes_the_sandboxs() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})

    put_sandbox(world)
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]["name"]
    volume = f"/api/v1/namespaces/team/persistentvolumeclaims/{pod}-workspace"
    assert world.status["workspaceClaim"] == f"{pod}-workspace"
    # Who claims it takes no write more for that: the volume is the pod's as well, and stays so for a while.
    assert calls_about(world, volume) == []
    assert keepers(world, volume) == ["SandboxPool", "Pod"]

    await world.wait(KEPT_BY_ITS_POD.total_seconds())
    assert calls_about(world, volume) == [f"PATCH {volume}"]
    assert keepers(world, volume) == ["Sandbox"]


async def test_a_sandbox_that_sleeps_soon_after_its_claim_keeps_its_volume() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})
    put_sandbox(world)
    await world.settle()
    volume = f"{CLAIMS_PATH}/{world.status['workspaceClaim']}"

    world.fall_asleep(uid_of(claimed_by(world)[0]))
    await world.settle()

    assert ready(world)[0] == "Asleep"
    assert keepers(world, volume) == ["Sandbox"]


async def test_a_sandbox_that_is_deleted_soon_after_its_claim_leaves_no_volume() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})
    path = put_sandbox(world)
    await world.settle()
    volume = f"{CLAIMS_PATH}/{world.status['workspaceClaim']}"

    world.api.vanish(path)
    await world.wait(10)

    assert volume not in world.api.objects
    assert len(waiting(world)) == 2


async def test_a_volume_that_its_pod_could_not_be_given_becomes_the_sandboxs_at_once() -> None:
    def refuse(number: int, call: str) -> None:
        if call.startswith("PATCH") and "persistentvolumeclaims/" in call:
            raise Forbidden(403, "Forbidden", "no")

    world = World()
    world.api.before = refuse
    await filled(world, template={"workspace": {"size": "1Gi"}})
    world.api.before = lambda number, call: None
    put_sandbox(world)
    await world.settle()

    assert keepers(world, f"{CLAIMS_PATH}/{world.status['workspaceClaim']}") == ["Sandbox"]


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
