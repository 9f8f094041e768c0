"""The arithmetic of a pool, for every situation that there can be."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from sandpod_operator.pool.numbers import Counts, Numbers, reckon, surge

few = st.integers(0, 12)
SITUATIONS = st.builds(
    Counts,
    wanted=few,
    fresh_ready=few,
    fresh_starting=few,
    old_ready=few,
    old_starting=few,
    held=few,
    most_starting=st.integers(1, 6),
    claims=few,
    started_lately=st.booleans(),
    refused=st.booleans(),
    crowded=st.booleans(),
    limited=st.booleans(),
)


def carried_out(counts: Counts, numbers: Numbers) -> Counts:
    return replace(
        counts,
        fresh_ready=counts.fresh_ready - numbers.remove_fresh_ready,
        fresh_starting=counts.fresh_starting + numbers.create - numbers.remove_fresh_starting,
        old_ready=counts.old_ready - numbers.remove_old_ready,
        old_starting=counts.old_starting - numbers.remove_old_starting,
    )


def total(counts: Counts) -> int:
    fresh, old = counts.fresh_ready + counts.fresh_starting, counts.old_ready + counts.old_starting
    return fresh + old + counts.held


@given(SITUATIONS)
def test_no_pod_is_removed_that_does_not_exist(counts: Counts) -> None:
    after = carried_out(counts, reckon(counts))

    assert min(after.fresh_ready, after.fresh_starting, after.old_ready, after.old_starting) >= 0


@given(SITUATIONS)
def test_never_are_pods_made_beyond_the_wanted_and_the_surge(counts: Counts) -> None:
    numbers = reckon(counts)

    if numbers.create:
        assert total(carried_out(counts, numbers)) <= counts.wanted + surge(counts)


@given(SITUATIONS)
def test_never_do_more_start_at_a_time_than_may(counts: Counts) -> None:
    numbers = reckon(counts)

    if numbers.create:
        assert carried_out(counts, numbers).fresh_starting + counts.held <= counts.most_starting


@given(SITUATIONS)
def test_nothing_is_made_while_the_api_server_refuses(counts: Counts) -> None:
    assert reckon(replace(counts, refused=True)).create == 0


@given(SITUATIONS)
def test_what_is_ready_stays_ready_as_far_as_it_is_wanted(counts: Counts) -> None:
    before = counts.fresh_ready + counts.old_ready
    after = carried_out(counts, reckon(counts))

    least = min(before, counts.wanted) - (1 if counts.crowded or counts.limited else 0)
    assert after.fresh_ready + after.old_ready >= least


@given(SITUATIONS)
def test_a_second_look_finds_nothing_to_do(counts: Counts) -> None:
    after = carried_out(counts, reckon(counts))
    # A pod that is given up for want of room makes some.
    again = reckon(replace(after, crowded=False))

    assert carried_out(after, again) == after or counts.crowded


@given(SITUATIONS)
def test_every_pool_fills_and_forgets_its_old_pods(counts: Counts) -> None:
    counts = replace(counts, refused=False, crowded=False, held=0, claims=0)
    for _ in range(40):
        counts = carried_out(counts, reckon(counts))
        # What starts comes up.
        started = counts.fresh_starting
        counts = replace(counts, fresh_ready=counts.fresh_ready + started, fresh_starting=0)

    assert counts == replace(counts, fresh_ready=counts.wanted, fresh_starting=0, old_ready=0, old_starting=0)
    assert reckon(counts) == Numbers()


@given(SITUATIONS)
def test_a_pool_that_finds_no_room_gives_up_one_old_pod_at_a_time(counts: Counts) -> None:
    counts = replace(counts, crowded=True)
    calm = reckon(replace(counts, crowded=False))

    assert reckon(counts).remove_old_ready - calm.remove_old_ready in (0, 1)


def test_in_a_burst_of_claims_a_pool_refills_slowly_while_there_are_pods_to_give() -> None:
    burst = Counts(wanted=100, fresh_ready=40, claims=20)

    assert reckon(burst) == Numbers(create=1)
    assert reckon(replace(burst, fresh_starting=1)) == Numbers(create=0)
    assert reckon(replace(burst, started_lately=True)) == Numbers(create=0)
    assert reckon(replace(burst, most_starting=16)) == Numbers(create=4)
    # A few claims a second are what a pool is for, and one that runs dry would cost cold starts.
    assert reckon(replace(burst, claims=4)) == Numbers(create=4)
    assert reckon(replace(burst, fresh_ready=4)) == Numbers(create=4)
