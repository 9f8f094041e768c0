"""How many claims a pool had within the last moment."""

from datetime import UTC, datetime, timedelta

from sandpod_operator.observations import Key
from sandpod_operator.pool.pace import LATELY, MOST_CLAIMS, Pace

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POOL, OTHER = Key("default", "python"), Key("default", "node")


def test_a_claim_of_a_pool_counts_for_a_moment_and_for_no_other_pool() -> None:
    pace = Pace()
    pace.claimed(POOL, now=NOW)
    pace.claimed(POOL, now=NOW + LATELY / 2)

    assert len(pace.lately(POOL, now=NOW + LATELY / 2)) == 2
    assert pace.lately(POOL, now=NOW + LATELY) == (NOW + LATELY * 1.5,)
    assert pace.lately(OTHER, now=NOW) == ()


def test_nothing_is_kept_of_pools_that_are_quiet_and_not_much_of_busy_ones() -> None:
    pace = Pace()
    for _ in range(MOST_CLAIMS + 5):
        pace.claimed(POOL, now=NOW)

    assert len(pace.lately(POOL, now=NOW)) == MOST_CLAIMS
    pace.claimed(OTHER, now=NOW + LATELY)
    assert pace.lately(POOL, now=NOW + LATELY) == ()
    assert list(vars(pace)["_until"]) == [OTHER]


def test_a_clock_that_is_put_back_leaves_no_burst_behind() -> None:
    pace = Pace()
    pace.claimed(POOL, now=NOW)

    assert pace.lately(POOL, now=NOW - timedelta(hours=1)) == ()
