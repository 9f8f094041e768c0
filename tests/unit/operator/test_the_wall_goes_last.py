"""A pod that is told to end has half a minute for it, and works behind its NetworkPolicy until it has."""

import pytest
from sandpod_crds.errors import Forbidden
from sandpod_crds.names import LABEL_MANAGED_BY, LABEL_NETWORK, LABEL_SANDBOX_UID
from sandpod_operator.objects import Json, uid_of

from tests.support.operator_scenarios import PORTS, create
from tests.support.operator_world import POD_PATH, PODS_PATH, SANDBOX_PATH, World
from tests.support.pool_world import claimed_by, filled, put_sandbox, ready

WALL_PATH = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/box-sandbox"
# Until somebody takes that off again, its programs work on.
HELD: Json = {"metadata": {"finalizers": ["example.com/grace"]}}
CLOSED: Json = {"network": {"egress": "None"}}


async def being_deleted(spec: Json) -> World:
    world = World()
    await create(world, spec)
    world.api.change(POD_PATH, HELD)
    world.api.vanish(SANDBOX_PATH)
    await world.wait(60)
    assert "deletionTimestamp" in world.pod["metadata"]
    return world


async def test_a_sandbox_that_is_deleted_leaves_its_wall_until_its_pod_has_ended() -> None:
    world = await being_deleted(CLOSED)
    assert WALL_PATH in world.api.objects

    world.api.vanish(POD_PATH)
    await world.settle()

    assert WALL_PATH not in world.api.objects


async def test_an_operator_that_was_started_again_knows_whose_wall_it_is() -> None:
    world = await being_deleted(CLOSED)

    world.boot()
    await world.wait(60)
    assert WALL_PATH in world.api.objects

    world.api.vanish(POD_PATH)
    await world.settle()
    assert WALL_PATH not in world.api.objects


async def test_what_was_deleted_while_the_operator_was_down_is_found_when_it_starts() -> None:
    world = World()
    await create(world, CLOSED)
    for path in (SANDBOX_PATH, POD_PATH):
        world.api.vanish(path)

    world.boot()
    await world.settle()

    assert WALL_PATH not in world.api.objects


async def test_one_that_lost_its_labels_serves_the_next_sandbox_of_the_name() -> None:
    world = World()
    await create(world, CLOSED)
    world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    await world.wait(60)
    world.api.change(WALL_PATH, {"metadata": {"labels": {LABEL_MANAGED_BY: None}}})
    world.api.vanish(SANDBOX_PATH)
    await world.wait(60)

    await create(world, CLOSED)

    assert world.ready() == ("Running", "True", "RuntimeAnswers")
    behind = world.api.objects[WALL_PATH]["spec"]["podSelector"]["matchLabels"][LABEL_NETWORK]
    assert behind == uid_of(world.sandbox)


async def test_a_sandbox_of_the_same_name_does_not_take_the_wall_from_around_the_earlier_ones_pod() -> None:
    world, path, pod_path = await with_an_earlier_pod()
    world.api.vanish(path)
    await world.settle()

    put_sandbox(world, spec=CLOSED)
    await world.wait(60)
    assert behind_the_wall(world) == world.api.objects[pod_path]["metadata"]["labels"][LABEL_NETWORK]
    assert ready(world) == ("Pending", "EarlierPod")

    world.api.vanish(pod_path)
    await world.settle()
    assert behind_the_wall(world) == uid_of(world.sandbox)
    assert ready(world) == ("Running", "RuntimeAnswers")


@pytest.mark.parametrize("at_once", [False, True])
async def test_nor_from_around_one_that_was_orphaned(at_once: bool) -> None:
    world, path, pod_path = await with_an_earlier_pod()
    world.api.change(pod_path, {"metadata": {"ownerReferences": None}})
    world.api.vanish(path)
    if not at_once:
        await world.settle()

    put_sandbox(world, spec={"network": {"egress": "Internet"}})
    await world.wait(60)

    assert behind_the_wall(world) == world.api.objects[pod_path]["metadata"]["labels"][LABEL_NETWORK]


async def test_whose_network_has_to_wait_for_that_is_told_so() -> None:
    world, path, pod_path = await with_an_earlier_pod()
    world.api.vanish(path)
    await world.settle()
    put_sandbox(world)
    await world.wait(60)
    assert ready(world) == ("Running", "RuntimeAnswers")

    world.api.change(path, {"spec": CLOSED})
    await world.wait(60)
    assert isolated(world) == ("False", "EarlierWall")

    world.api.vanish(pod_path)
    await world.wait(60)
    assert isolated(world) == ("True", "Standard")
    [pod] = claimed_by(world)
    assert pod["metadata"]["labels"][LABEL_NETWORK] == behind_the_wall(world) == uid_of(world.sandbox)


async def test_a_network_is_closed_though_the_pods_owner_cannot_be_had_back() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    [pod] = claimed_by(world)
    pod_path = f"{PODS_PATH}/{pod['metadata']['name']}"

    def disown(obj: Json) -> None:
        if obj["kind"] == "Pod":
            obj["metadata"].pop("ownerReferences", None)

    world.api.admit = disown
    world.api.change(pod_path, {"metadata": {"annotations": {"touched": "yes"}}})
    await world.wait(60)
    world.api.change(path, {"spec": CLOSED})
    await world.wait(60)

    now = world.api.objects[pod_path]["metadata"]
    assert "ownerReferences" not in now
    assert now["labels"][LABEL_NETWORK] == uid_of(world.sandbox)


async def test_a_wall_that_may_not_be_taken_down_keeps_no_preview() -> None:
    world = World()
    await create(world, {**CLOSED, **PORTS})

    def refuse(_: int, call: str) -> None:
        if call == f"DELETE {WALL_PATH}":
            raise Forbidden(403, "Forbidden", "no")

    world.api.before = refuse
    world.api.vanish(SANDBOX_PATH)
    await world.wait(60)

    assert not [path for path in world.api.objects if "/ingresses/" in path]


async def test_one_that_lost_the_label_of_its_sandbox_goes_with_it_all_the_same() -> None:
    world = World()
    await create(world, {**CLOSED, "paused": True})
    world.api.change(SANDBOX_PATH, {"spec": {"paused": False}})
    await world.wait(60)
    world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    await world.wait(60)
    world.api.change(WALL_PATH, {"metadata": {"labels": {LABEL_SANDBOX_UID: None}}})
    world.api.vanish(SANDBOX_PATH)
    await world.wait(60)

    assert WALL_PATH not in world.api.objects


async def with_an_earlier_pod() -> tuple[World, str, str]:
    """One that a sandbox of the name box took from the pool, and that takes its time to end."""
    world = await filled(World())
    path = put_sandbox(world, spec=CLOSED)
    await world.settle()
    [earlier] = claimed_by(world)
    pod_path = f"{PODS_PATH}/{earlier['metadata']['name']}"
    world.api.change(pod_path, HELD)
    return world, path, pod_path


def behind_the_wall(world: World) -> str:
    return world.api.objects[WALL_PATH]["spec"]["podSelector"]["matchLabels"][LABEL_NETWORK]


def isolated(world: World) -> tuple[str, str]:
    found = next(each for each in world.status["conditions"] if each["type"] == "Isolated")
    return found["status"], found["reason"]
