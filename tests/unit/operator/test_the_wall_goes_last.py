"""A pod that is told to end has half a minute for it, and works behind its NetworkPolicy until it has."""

from sandpod_crds.names import LABEL_MANAGED_BY, LABEL_NETWORK
from sandpod_operator.objects import Json, uid_of

from tests.support.operator_scenarios import create
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
    world = await filled(World())
    path = put_sandbox(world, spec=CLOSED)
    await world.settle()
    [earlier] = claimed_by(world)
    pod_path = f"{PODS_PATH}/{earlier['metadata']['name']}"
    world.api.change(pod_path, HELD)
    world.api.vanish(path)
    await world.settle()

    put_sandbox(world, spec=CLOSED)
    await world.wait(60)
    behind = world.api.objects[WALL_PATH]["spec"]["podSelector"]["matchLabels"][LABEL_NETWORK]
    assert behind == earlier["metadata"]["labels"][LABEL_NETWORK]
    assert ready(world) == ("Pending", "EarlierPod")

    world.api.vanish(pod_path)
    await world.settle()
    behind = world.api.objects[WALL_PATH]["spec"]["podSelector"]["matchLabels"][LABEL_NETWORK]
    assert behind == uid_of(world.sandbox)
    assert ready(world) == ("Running", "RuntimeAnswers")
