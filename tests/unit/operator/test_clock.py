"""The clock of the operator's node is put by an hour: nobody waits an hour for what takes seconds, and no
start is given up for it.
"""

import pytest
from sandpod_operator.objects import Json, uid_of
from sandpod_operator.times import format_time

from tests.support.operator_node import hold_it, run_it, run_it_deaf
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World, new_sandbox

HOUR = 3600.0
RUNNING = ("Running", "True", "RuntimeAnswers")


@pytest.fixture(params=[-HOUR, HOUR], ids=["put back", "put forward"])
def jump(request: pytest.FixtureRequest) -> float:
    return request.param


def hold_its_end(world: World) -> None:
    """Nothing ends the pod that is there: its node is silent, or its runtime does not listen."""
    held, tend = uid_of(world.pod), world._tend_pod  # pyright: ignore[reportPrivateUsage] - a node's own

    def others(path: str, pod: Json) -> None:
        if uid_of(pod) != held:
            tend(path, pod)

    world._tend_pod = others  # pyright: ignore[reportPrivateUsage]


async def test_a_runtime_that_never_answers_is_given_up_in_time(jump: float) -> None:
    world = World()
    world.kubelet = run_it_deaf
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(10)

    world.kubelet = run_it
    world.put_clock(jump)
    await world.wait(60)

    assert world.ready() == RUNNING
    assert world.status["startFailures"] == 1


async def test_a_runtime_that_is_about_to_answer_is_not_given_up(jump: float) -> None:
    world = World()
    world.kubelet = run_it_deaf
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(2)
    pod = uid_of(world.pod)

    world.put_clock(jump)
    world.queue.add(next(iter(world.store.sandboxes)))
    await world.wait(5)

    assert uid_of(world.pod) == pod
    assert world.status["podUID"] == pod


async def test_a_paused_sandbox_that_never_ends_is_ended_in_time(jump: float) -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(100)
    del world.runtimes[uid_of(world.pod)]
    world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    await world.wait(5)
    assert world.status["phase"] == "Draining"

    world.put_clock(jump)
    await world.wait(60)

    assert world.ready() == ("Asleep", "False", "Paused")


async def test_a_pod_of_a_silent_node_is_forced_out_in_time(jump: float) -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(100)
    first = uid_of(world.pod)
    hold_its_end(world)
    world.api.change(POD_PATH, {"metadata": {"deletionTimestamp": format_time(world.now())}})
    await world.wait(5)

    world.put_clock(jump)
    await world.wait(60)

    assert world.ready() == RUNNING
    assert world.status["podUID"] != first


async def test_a_pod_that_has_a_long_time_to_end_has_it() -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(100)
    first = uid_of(world.pod)
    hold_its_end(world)
    deletion = {"deletionTimestamp": "2026-11-18T12:31:40Z", "deletionGracePeriodSeconds": 1800}
    world.api.change(POD_PATH, {"metadata": deletion})
    await world.wait(1500)

    assert uid_of(world.pod) == first


async def test_a_start_that_is_slow_is_called_so_in_time() -> None:
    world = World()
    world.kubelet = lambda world, pod: None
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.wait(10)

    world.put_clock(-HOUR)
    await world.wait(60)

    assert world.ready() == ("Starting", "False", "StartingSlowly")


async def test_a_start_that_has_lasted_is_forgiven_its_failures() -> None:
    world = World()
    world.kubelet = hold_it
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.settle()
    world.kubelet = run_it
    world.api.vanish(POD_PATH)
    await world.wait(10)
    assert world.status["startFailures"] == 1

    world.put_clock(-HOUR)
    await world.wait(60)

    assert "startFailures" not in world.status
