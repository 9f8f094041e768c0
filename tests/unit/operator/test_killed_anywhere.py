"""The operator is killed before or after each of its calls to the API server, one run for each, and started
again; or the API server, the watch, the clock or somebody else is at fault at that moment. The end is the
same as without.

HYPOTHESIS_PROFILE=long lets everything be at fault at each call; otherwise at every fifth, in turn.
"""

import os

import pytest

from tests.support.operator_faults import FAULTS, HOUR, KILLS, Fault, check_calls, clock_put_back
from tests.support.operator_losses import LOSSES
from tests.support.operator_scenarios import LIVES, Scenario, asleep_too_long, outcome, too_old
from tests.support.operator_world import World

SCENARIOS = (*LIVES, *LOSSES)
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def names(items: tuple[Scenario, ...] | tuple[Fault, ...]) -> list[str]:
    return [item.__name__ for item in items]


async def gone_through(scenario: Scenario, fault: Fault | None = None, victim: int = 0) -> World:
    world = World()
    if fault is not None:
        fault(world, victim)
    await scenario(world)
    # The longest pause of the queue, and then some. Only a lifetime's end is a time of day.
    lives_by_the_clock = fault is clock_put_back and scenario in (too_old, asleep_too_long)
    await world.wait(HOUR + 100 if lives_by_the_clock else 100)
    return world


@pytest.mark.parametrize("fault", KILLS, ids=names(KILLS))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=names(SCENARIOS))
async def test_the_end_is_the_same_wherever_the_operator_is_killed(scenario: Scenario, fault: Fault) -> None:
    untouched = await gone_through(scenario)
    wanted, calls = outcome(untouched, counters=True), untouched.api.calls
    assert len(calls) >= 4

    for victim in range(1, len(calls) + 1):
        world = await gone_through(scenario, fault, victim)
        assert outcome(world, counters=True) == wanted, f"{fault.__name__} {calls[victim - 1]}"
        check_calls(world, calls)


@pytest.mark.parametrize("fault", FAULTS, ids=names(FAULTS))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=names(SCENARIOS))
async def test_the_end_is_the_same_whatever_goes_wrong_on_the_way(scenario: Scenario, fault: Fault) -> None:
    untouched = await gone_through(scenario)
    wanted, calls = outcome(untouched, counters=False), untouched.api.calls

    for victim in victims(scenario, fault, calls=len(calls)):
        world = await gone_through(scenario, fault, victim)
        assert outcome(world, counters=False) == wanted, f"{fault.__name__} at {calls[victim - 1]}"
        check_calls(world, calls)


def victims(scenario: Scenario, fault: Fault, *, calls: int) -> range:
    """Each fault strikes at each of the calls of some scenario."""
    turn = (FAULTS.index(fault) + SCENARIOS.index(scenario)) % 5
    return range(1, calls + 1) if LONG else range(1 + turn, calls + 1, 5)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=names(SCENARIOS))
async def test_at_its_end_nothing_is_written_any_more_by_this_operator_or_the_next(
    scenario: Scenario,
) -> None:
    world = await gone_through(scenario)
    world.api.calls.clear()
    await world.wait(3600)
    world.boot()
    await world.wait(60)

    assert world.api.calls == []
    assert world.asker.wanted == {}
