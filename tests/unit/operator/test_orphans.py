"""A sandbox is deleted with --cascade=orphan: the garbage collector takes nothing along, and what works or
stands for nobody any more goes all the same. Files stay.
"""

import pytest
from sandpod_crds.errors import ApiError, Forbidden, Unavailable
from sandpod_operator.objects import Json

from tests.support.operator_scenarios import PORTS, VOLUME, create
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World

WALL_PATH = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/box-sandbox"
ORPHANED: Json = {"metadata": {"ownerReferences": None}}


def orphan(world: World) -> None:
    for path, obj in list(world.api.objects.items()):
        if obj["kind"] in ("Pod", "NetworkPolicy", "PersistentVolumeClaim"):
            world.api.change(path, ORPHANED)
    world.api.vanish(SANDBOX_PATH)


def kinds(world: World) -> list[str]:
    return sorted(obj["kind"] for obj in world.api.objects.values() if obj["kind"] != "Event")


@pytest.mark.parametrize(
    "error",
    [Unavailable(500, "InternalError", "failed calling webhook"), Forbidden(403, "Forbidden", "no")],
    ids=["for a moment", "for good"],
)
@pytest.mark.parametrize("going", [False, True], ids=["gone", "going"])
async def test_the_pod_goes_though_somebody_refuses_to_let_its_preview_go(
    error: ApiError, going: bool
) -> None:
    world = World()
    await create(world, PORTS)

    def refuse(_: int, call: str) -> None:
        if call.startswith("DELETE") and "ingresses" in call:
            raise error

    world.api.before = refuse
    if going:
        held = {"deletionTimestamp": "2026-11-18T12:01:00Z", "finalizers": ["orphan"]}
        world.api.change(SANDBOX_PATH, {"metadata": held})
    else:
        orphan(world)
    await world.wait(60)

    assert POD_PATH not in world.api.objects


async def test_its_wall_goes_after_its_pod_and_its_files_stay() -> None:
    world = World()
    await create(world, {**PORTS, **VOLUME})
    held = {"finalizers": ["example.com/slow"]}
    world.api.change(POD_PATH, {"metadata": held})
    orphan(world)
    await world.wait(60)
    assert kinds(world) == ["NetworkPolicy", "PersistentVolumeClaim", "Pod"]

    world.api.vanish(POD_PATH)
    await world.wait(60)
    assert kinds(world) == ["PersistentVolumeClaim"]


async def test_a_policy_that_only_bears_its_name_is_somebody_elses() -> None:
    world = World()
    labels = {"app.kubernetes.io/managed-by": "sandpod", "app.kubernetes.io/instance": "box"}
    metadata = {"name": "box-sandbox", "namespace": "team", "labels": labels}
    world.api.put(WALL_PATH, {"kind": "NetworkPolicy", "metadata": metadata, "spec": {}})

    await world.wait(60)

    assert kinds(world) == ["NetworkPolicy"]
