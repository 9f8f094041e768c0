"""The operator is killed before or after each of its calls to the API server, one run for each, and started
again: the end is the same as without.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.operator_api import Killed
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World, crash_it, hold_it, new_sandbox, run_it

Scenario = Callable[[World], Awaitable[None]]


async def cold_start(world: World) -> None:
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.settle()


async def pod_deleted_by_hand(world: World) -> None:
    await cold_start(world)
    await world.wait(100)
    world.api.change(POD_PATH, {"metadata": {"deletionTimestamp": "2026-11-18T12:10:00Z"}})
    await world.settle()


async def crash_at_start(world: World) -> None:
    world.kubelet = crash_it
    await cold_start(world)
    world.kubelet = run_it
    await world.wait(100)


async def crash_of_a_running_sandbox(world: World) -> None:
    await cold_start(world)
    await world.wait(100)
    crash_it(world, world.pod)
    await world.settle()


async def image_corrected(world: World) -> None:
    world.kubelet = hold_it
    world.api.put(SANDBOX_PATH, new_sandbox({"image": "wrong:1"}))
    await world.settle()
    world.kubelet = run_it
    world.api.change(SANDBOX_PATH, {"spec": {"image": "right:1"}})
    await world.settle()


async def deleted_and_made_again(world: World) -> None:
    await cold_start(world)
    world.api.vanish(SANDBOX_PATH)
    world.api.put(SANDBOX_PATH, new_sandbox({"image": "second:1"}))
    await world.settle()


SCENARIOS: list[Scenario] = [
    cold_start,
    pod_deleted_by_hand,
    crash_at_start,
    crash_of_a_running_sandbox,
    image_corrected,
    deleted_and_made_again,
]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_the_end_is_the_same_wherever_the_operator_is_killed(scenario: Scenario, moment: str) -> None:
    untouched = World()
    await scenario(untouched)
    calls = len(untouched.api.calls)
    assert calls >= 4

    for victim in range(1, calls + 1):
        world = World()
        killed = kill(world, victim, moment)
        await scenario(world)
        await world.wait(10)

        assert killed, f"call {victim} of {calls} was never made"
        assert outcome(world) == outcome(untouched), f"killed {moment} {untouched.api.calls[victim - 1]}"
        # One pod at a time, whatever happened.
        assert len([path for path in world.api.objects if "/pods/" in path]) == 1


def kill(world: World, victim: int, moment: str) -> list[int]:
    killed: list[int] = []

    def die(number: int, call: str) -> None:
        if number == victim and not killed:
            killed.append(number)
            raise Killed(call)

    setattr(world.api, moment, die)
    return killed


def outcome(world: World) -> dict[str, Any]:
    """What a user sees in the end, without times and UIDs."""
    status = world.status
    assert status["podUID"] == world.pod["metadata"]["uid"]
    kept = (
        "phase",
        "image",
        "podIP",
        "runtimeVersion",
        "restarts",
        "startFailures",
        "nextStartAt",
        "specHash",
    )
    conditions = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
    return {"conditions": conditions, **{name: status.get(name) for name in kept}}
