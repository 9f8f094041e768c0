"""Where a SandboxPolicy says how many sandboxes a namespace may have, each has its turn."""

from sandpod_operator.objects import Json
from sandpod_operator.times import format_time

from tests.support.operator_objects import KEY
from tests.support.operator_world import SANDBOX_PATH, World, new_sandbox
from tests.support.policy_world import (
    NAMESPACE_PATH,
    POLICY_PATH,
    REFUSED,
    RUNNING,
    condition,
    namespace,
    policy,
)


async def test_when_one_has_gone_it_is_the_next_ones_turn() -> None:
    world = World()
    world.api.put(NAMESPACE_PATH, namespace())
    world.api.put(POLICY_PATH, policy(maxSandboxes=1))
    older = new_sandbox()
    older["metadata"]["name"] = "a-first"
    older_path = SANDBOX_PATH.replace(f"/{KEY.name}", "/a-first")
    world.api.put(older_path, older)
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.settle()
    assert world.ready() == REFUSED
    assert "only the oldest sandbox of a namespace may start" in condition(world, "Ready")[2]

    world.api.vanish(older_path)
    await world.settle()

    assert world.ready() == RUNNING


def box_path(name: str) -> str:
    return SANDBOX_PATH.replace(f"/{KEY.name}", f"/{name}")


def put_boxes(world: World, names: str, spec: Json | None = None) -> None:
    for name in names:
        sandbox = new_sandbox(spec)
        sandbox["metadata"]["name"] = name
        world.api.put(box_path(name), sandbox)


def phases(world: World, names: str) -> list[str]:
    return [world.api.objects[box_path(name)]["status"]["phase"] for name in names]


def world_of_two() -> World:
    world = World()
    world.api.put(NAMESPACE_PATH, namespace())
    world.api.put(POLICY_PATH, policy(maxSandboxes=2))
    return world


async def test_when_several_go_at_once_it_is_the_turn_of_as_many() -> None:
    world = world_of_two()
    put_boxes(world, "abcde")
    await world.settle()
    assert phases(world, "abcde") == ["Running", "Running", "Pending", "Pending", "Pending"]

    for name in "ab":
        world.api.vanish(box_path(name))
    await world.settle()

    assert phases(world, "cde") == ["Running", "Running", "Pending"]


async def test_so_it_is_when_the_operator_deletes_them_before_the_watch_says_that_they_are_gone() -> None:
    world = world_of_two()
    put_boxes(world, "ab", {"lifetime": {"maxAge": "100s"}})
    await world.wait(10)
    put_boxes(world, "cde")
    await world.wait(80)

    world.blind = True
    await world.wait(20)
    world.blind = False
    await world.settle()

    assert phases(world, "cde") == ["Running", "Running", "Pending"]


async def test_one_that_is_held_while_it_is_deleted_keeps_nobody_waiting() -> None:
    world = world_of_two()
    put_boxes(world, "ab", {"lifetime": {"maxAge": "100s"}})
    await world.wait(10)
    put_boxes(world, "c")
    held = {"finalizers": ["example.com/slow"]}
    world.api.change(box_path("a"), {"metadata": held})
    # As the API server answers the deletion of what somebody holds.
    world.api.change(box_path("a"), {"metadata": {"deletionTimestamp": format_time(world.now())}})
    await world.settle()

    assert phases(world, "c") == ["Running"]
