"""Claims are exact, and pools as they should be, wherever on its way the operator is killed, or the API
server, the watch, the clock or somebody else is at fault.

HYPOTHESIS_PROFILE=long lets everything be at fault at each call; otherwise at some, in turn.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sandpod_crds.names import LABEL_INSTANCE
from sandpod_operator.objects import Json, controller, section, uid_of

from tests.support.operator_faults import FAULTS, HOUR, KILLS, Fault, check_calls, clock_put_back
from tests.support.operator_scenarios import WHILE
from tests.support.operator_world import World
from tests.support.pool_world import (
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

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
# Other faults than kills strike at one call of so many.
STEP = 6


async def fill(world: World, **pool: Any) -> None:
    put_pool(world, **pool)
    await world.wait(WHILE)


async def take(world: World, spec: Json | None = None) -> None:
    put_sandbox(world, spec=spec)
    await world.wait(WHILE)


async def sleep_and_wake(world: World) -> None:
    await world.wait(100)
    world.fall_asleep(claimed_by(world)[0]["metadata"]["uid"])
    await world.wait(WHILE)
    world.ask_awake("1")
    await world.wait(WHILE)


async def claim(world: World) -> None:
    await fill(world)
    await take(world)


async def claim_with_a_workspace(world: World) -> None:
    await fill(world, template={"workspace": {"size": "1Gi"}})
    await take(world)


async def claim_with_a_workspace_that_stays(world: World) -> None:
    await fill(world, template={"workspace": {"size": "1Gi", "reclaim": "Retain"}})
    await take(world)


async def claim_with_a_workspace_sleep_and_wake(world: World) -> None:
    await claim_with_a_workspace(world)
    await sleep_and_wake(world)


async def claim_with_another_network(world: World) -> None:
    await fill(world)
    await take(world, {"network": {"egress": "None"}})


async def claim_sleep_and_claim_again(world: World) -> None:
    await claim(world)
    await sleep_and_wake(world)


async def roll(world: World) -> None:
    await claim(world)
    world.api.change(TEMPLATE_PATH, {"spec": {"image": "new:1"}})
    await world.wait(WHILE)


async def empty(world: World) -> None:
    await fill(world, replicas=0)
    await take(world)


SCENARIOS: list[Scenario] = [
    claim,
    claim_with_a_workspace,
    claim_with_a_workspace_that_stays,
    claim_with_a_workspace_sleep_and_wake,
    claim_with_another_network,
    claim_sleep_and_claim_again,
    roll,
    empty,
]


async def gone_through(scenario: Scenario, fault: Fault | None = None, victim: int = 0) -> World:
    world = World()
    if fault is not None:
        fault(world, victim)
    await scenario(world)
    await world.wait(100 if fault is not clock_put_back else HOUR + 100)
    return world


@pytest.mark.parametrize("fault", [*KILLS, *FAULTS], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_the_end_is_the_same_whatever_goes_wrong_on_the_way(scenario: Scenario, fault: Fault) -> None:
    untouched = await gone_through(scenario)
    wanted, calls = outcome(untouched), untouched.api.calls

    for victim in victims(scenario, fault, calls=len(calls)):
        world = await gone_through(scenario, fault, victim)
        assert outcome(world) == wanted, f"{fault.__name__} at {calls[victim - 1]}"
        check_calls(world, calls)


def victims(scenario: Scenario, fault: Fault, *, calls: int) -> range:
    """It is killed at each of its calls; each other fault strikes at each of the calls of some scenario."""
    if LONG or fault in KILLS:
        return range(1, calls + 1)
    return range(1 + (FAULTS.index(fault) + SCENARIOS.index(scenario)) % STEP, calls + 1, STEP)


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
        "volumes": sorted(
            (
                controller(obj["metadata"]).get("kind", "nobody"),
                obj["metadata"]["labels"].get(LABEL_INSTANCE, "nobody"),
                obj["metadata"]["name"] == status.get("workspaceClaim"),
            )
            for obj in world.api.objects.values()
            if obj["kind"] == "PersistentVolumeClaim"
        ),
    }
