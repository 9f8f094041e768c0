"""Bursts of claims in the cluster in memory."""

from typing import Any

from sandpod_operator.objects import Json, controller, uid_of

from tests.support.operator_objects import installation
from tests.support.operator_world import World
from tests.support.pool_world import (
    claimed_by,
    condition,
    filled,
    pod_of,
    pods,
    pool_status,
    put_sandbox,
    ready,
)

RUNNING = ("Running", "RuntimeAnswers")
NAMES = tuple("abcdef")
POOL_SIZE = 8
# Until the pods of a burst have been told, and the pool is full again.
AFTERWARDS = 60.0


def small_pools() -> World:
    """Three claims in a second are a burst."""
    return World(installation(pools={"mostStarting": 1}))


async def burst(spec: Json | None = None, *, world: World | None = None, **pool: Any) -> World:
    world = await filled(world or small_pools(), replicas=POOL_SIZE, **pool)
    for name in NAMES:
        put_sandbox(world, name, spec)
    await world.settle()
    return world


def told(world: World) -> list[str]:
    """The sandboxes whose pods say that they are theirs."""
    return [name for name in NAMES if claimed_by(world, name)]


def check_the_end(world: World, names: tuple[str, ...] = NAMES) -> None:
    assert {name: ready(world, name) for name in names} == dict.fromkeys(names, RUNNING)
    mine = [pod_of(world, name) for name in names]
    assert len({uid_of(pod) for pod in mine}) == len(names)
    owners = [controller(pod["metadata"])["name"] for pod in mine]
    assert owners == list(names)
    assert len(pods(world)) == len(names) + POOL_SIZE
    assert condition(world, "Ready") == ("True", "AllReady")
    assert "lending" not in pool_status(world)
