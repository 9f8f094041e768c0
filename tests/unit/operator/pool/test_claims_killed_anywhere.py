"""Claims are exact wherever on its way the operator is killed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sandpod_operator.objects import controller, section, uid_of

from tests.support.operator_api import Killed
from tests.support.operator_world import World
from tests.support.pool_world import (
    OURS,
    POOL_PATH,
    TEMPLATE_PATH,
    claimed_by,
    pods,
    put_pool,
    put_sandbox,
    ready,
    waiting,
)

Scenario = Callable[[World], Awaitable[None]]


async def claim(world: World) -> None:
    put_pool(world)
    await world.settle()
    await world.wait(2)
    put_sandbox(world)
    await world.settle()


async def claim_with_a_workspace(world: World) -> None:
    put_pool(world, template={"workspace": {"size": "1Gi"}})
    await world.settle()
    await world.wait(2)
    put_sandbox(world)
    await world.settle()


async def claim_with_another_network(world: World) -> None:
    put_pool(world)
    await world.settle()
    await world.wait(2)
    put_sandbox(world, spec={"network": {"egress": "None"}})
    await world.settle()


async def claim_sleep_and_claim_again(world: World) -> None:
    await claim(world)
    await world.wait(100)
    world.fall_asleep(claimed_by(world)[0]["metadata"]["uid"])
    await world.settle()
    world.api.change(
        f"{OURS}/sandboxes/box", {"metadata": {"annotations": {"sandpod.dev/wake-requested-at": "1"}}}
    )
    await world.settle()


async def roll(world: World) -> None:
    await claim(world)
    world.api.change(TEMPLATE_PATH, {"spec": {"image": "new:1"}})
    await world.wait(5)


async def empty(world: World) -> None:
    put_pool(world, replicas=0)
    put_sandbox(world)
    await world.settle()


SCENARIOS: list[Scenario] = [
    claim,
    claim_with_a_workspace,
    claim_with_another_network,
    claim_sleep_and_claim_again,
    roll,
    empty,
]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_the_end_is_the_same_wherever_the_operator_is_killed(scenario: Scenario, moment: str) -> None:
    untouched = World()
    await scenario(untouched)
    await untouched.wait(10)
    calls = len(untouched.api.calls)

    for victim in range(1, calls + 1):
        world = World()
        killed = kill(world, victim, moment)
        await scenario(world)
        await world.wait(10)

        if not killed:
            # Counts are written once a second, so that there may be fewer.
            continue
        assert outcome(world) == outcome(untouched), f"killed {moment} {untouched.api.calls[victim - 1]}"


def kill(world: World, victim: int, moment: str) -> list[int]:
    killed: list[int] = []

    def die(number: int, call: str) -> None:
        if number == victim and not killed:
            killed.append(number)
            raise Killed(call)

    setattr(world.api, moment, die)
    return killed


def outcome(world: World) -> dict[str, Any]:
    """What people see in the end, without names, times and UIDs."""
    sandbox = world.sandbox
    status, pool = section(sandbox, "status"), section(world.api.objects[POOL_PATH], "status")
    mine = [pod for pod in pods(world) if controller(pod["metadata"]).get("uid") == uid_of(sandbox)]
    kinds = sorted(path.split("/")[-2] for path in world.api.objects if "/events/" not in path)
    assert [uid_of(pod) for pod in mine] == [status["podUID"]]
    return {
        "ready": ready(world),
        "pool": status.get("pool"),
        "start failures": status.get("startFailures"),
        "waiting": len(waiting(world)),
        "counts": [pool.get(name) for name in ("replicas", "readyReplicas", "updatedReplicas", "claimed")],
        "objects": kinds,
        "owners": sorted(
            controller(obj["metadata"]).get("kind", "")
            for path, obj in world.api.objects.items()
            if "persistentvolumeclaims" in path
        ),
    }
