"""The mark of a pool whose pods are lent: an operator that is killed, or whatever else goes wrong, loses no
pod and gives none to another.
"""

import pytest
from sandpod_crds.errors import Forbidden, Unavailable
from sandpod_operator.objects import Json, section, uid_of

from tests.support.lending_world import AFTERWARDS, NAMES, POOL_SIZE, burst, check_the_end, small_pools, told
from tests.support.operator_faults import FAULTS, HOUR, KILLS, Fault, check_calls, clock_put_back
from tests.support.operator_world import World
from tests.support.pool_world import (
    OURS,
    PODS_PATH,
    POOL_PATH,
    claimed_by,
    filled,
    pod_of,
    pods,
    pool_status,
    put_pool,
    put_pool_alone,
    put_sandbox,
    waiting,
)


async def test_a_pool_that_cannot_be_marked_tells_its_pods_at_once() -> None:
    world = await filled(small_pools(), replicas=POOL_SIZE)

    def no(_: int, call: str) -> None:
        if call == f"PATCH {POOL_PATH}/status":
            raise Forbidden(403, "Forbidden", "no")

    world.api.before = no
    for name in NAMES:
        put_sandbox(world, name)
    await world.settle()

    assert told(world) == list(NAMES)


async def test_a_new_operator_takes_up_what_an_earlier_one_has_lent() -> None:
    world = await burst()
    before = {name: uid_of(pod_of(world, name)) for name in NAMES}

    world.boot()
    await world.settle()
    assert {name: uid_of(pod_of(world, name)) for name in NAMES} == before

    await world.wait(AFTERWARDS)
    assert {name: uid_of(pod_of(world, name)) for name in NAMES} == before
    check_the_end(world)


async def test_pods_of_which_a_new_operator_does_not_know_whether_they_wait_are_replaced() -> None:
    world = await burst()
    unknown = {uid_of(pod) for pod in waiting(world)} - {uid_of(pod_of(world, name)) for name in NAMES}
    assert unknown

    world.boot()
    await world.wait(AFTERWARDS)

    assert unknown.isdisjoint(uid_of(pod) for pod in pods(world))
    check_the_end(world)


async def test_of_a_sandbox_that_went_while_nobody_looked_no_pod_is_left_and_nobody_gets_it() -> None:
    world = await burst()
    gone = uid_of(pod_of(world, "f"))

    world.api.vanish(f"{OURS}/sandboxes/f")
    world.boot()
    put_sandbox(world, "g")
    await world.wait(AFTERWARDS)

    assert gone not in {uid_of(pod) for pod in pods(world)}
    check_the_end(world, (*NAMES[:-1], "g"))


async def lends_more(world: World) -> list[str]:
    """The sandboxes of one more burst whose pods have yet to be told."""
    more = [f"n{number}" for number in range(4)]
    for name in more:
        put_sandbox(world, name)
    await world.settle()
    return [name for name in more if not claimed_by(world, name)]


def unanswered(world: World, *, set_to: bool) -> list[str]:
    """The answer is lost to the first call that sets the mark, or takes it off."""
    lost: list[str] = []

    def lose(_: int, call: str) -> None:
        if call == f"PATCH {POOL_PATH}/status" and ("lending" in pool_status(world)) is set_to and not lost:
            lost.append(call)
            raise Unavailable(0, "Timeout", "no answer")

    world.api.after = lose
    return lost


async def test_no_pod_is_lent_without_a_mark_when_nobody_heard_that_it_was_taken_off() -> None:
    world = await burst()
    lost = unanswered(world, set_to=False)
    while not lost:
        await world.wait(0.5)

    assert await lends_more(world)
    assert "lending" in pool_status(world)


async def test_a_mark_that_nobody_heard_of_does_not_stay() -> None:
    world = await filled(small_pools(), replicas=POOL_SIZE)
    lost = unanswered(world, set_to=True)
    for name in NAMES[:3]:
        put_sandbox(world, name)
    await world.settle()
    assert lost

    await world.wait(AFTERWARDS)

    assert "lending" not in pool_status(world)


async def test_a_pool_that_is_made_again_has_a_mark_of_its_own() -> None:
    world = await burst()
    for pod in waiting(world):
        world.api.change(f"{PODS_PATH}/{pod['metadata']['name']}", {"metadata": {"ownerReferences": None}})
    world.api.vanish(POOL_PATH)
    put_pool_alone(world, replicas=POOL_SIZE)
    await world.wait(2)

    assert await lends_more(world)
    assert "lending" in pool_status(world)


async def test_while_an_earlier_operators_mark_may_not_be_taken_off_no_pod_is_replaced_twice() -> None:
    world = await burst()
    world.boot()

    def no(obj: Json) -> None:
        if obj["kind"] == "SandboxPool" and "lending" not in section(obj, "status"):
            raise Forbidden(403, "Forbidden", "a webhook says no")

    world.api.admit = no
    await world.wait(AFTERWARDS)
    replaced = {uid_of(pod) for pod in waiting(world)}
    await world.wait(600)

    assert {uid_of(pod) for pod in waiting(world)} == replaced
    world.api.admit = lambda obj: None
    await world.wait(AFTERWARDS)
    check_the_end(world)


async def test_a_mark_of_our_own_that_arrives_late_does_not_stay() -> None:
    world = await burst()
    early = pool_status(world)["lending"]
    await world.wait(AFTERWARDS)

    world.api.change(POOL_PATH, {"status": {"lending": early}})
    kept = {uid_of(pod) for pod in pods(world)}
    await world.wait(AFTERWARDS)

    assert {uid_of(pod) for pod in pods(world)} == kept
    check_the_end(world)


async def test_before_its_own_mark_replaces_another_operators_that_one_is_heeded() -> None:
    world = await filled(small_pools(), replicas=POOL_SIZE)
    before = {uid_of(pod) for pod in pods(world)}

    world.api.change(POOL_PATH, {"status": {"lending": "another operator's"}})
    for name in NAMES:
        put_sandbox(world, name)
    await world.wait(AFTERWARDS)

    # The first ones were told at once.
    claimed = {uid_of(pod_of(world, name)) for name in NAMES}
    assert before & {uid_of(pod) for pod in pods(world)} <= claimed
    check_the_end(world)


async def test_an_api_server_that_drops_the_mark_means_that_pods_are_told_at_once() -> None:
    world = await filled(small_pools(), replicas=POOL_SIZE)

    def drop(obj: Json) -> None:
        if obj["kind"] == "SandboxPool":
            section(obj, "status").pop("lending", None)

    world.api.admit = drop
    for name in NAMES:
        put_sandbox(world, name)
    await world.settle()

    assert told(world) == list(NAMES)


@pytest.mark.parametrize("fault", [*KILLS, *FAULTS], ids=lambda fault: fault.__name__)
async def test_whatever_goes_wrong_in_a_burst_everybody_gets_a_pod_and_nobody_anothers(fault: Fault) -> None:
    untouched = (await gone_through(None, 0)).api.calls

    for victim in range(1, len(untouched) + 1):
        world = await gone_through(fault, victim)
        check_the_end(world)
        # Six sandboxes at once, and a pool that is replaced when its operator is killed.
        check_calls(world, untouched, a_minute=70)
        served = [world.runtimes[uid_of(pod_of(world, name))].sandbox_uid for name in NAMES]
        assert served == [uid_of(world.api.objects[f"{OURS}/sandboxes/{name}"]) for name in NAMES]


async def gone_through(fault: Fault | None, victim: int) -> World:
    world = small_pools()
    put_pool(world, replicas=POOL_SIZE)
    await world.wait(40)
    world.api.calls.clear()
    if fault is not None:
        fault(world, victim)
    for name in NAMES:
        put_sandbox(world, name)
    await world.wait(100 if fault is not clock_put_back else HOUR + 100)
    return world
