"""How a sandbox's lifetime ends, and what a clock that jumps does to its deadlines."""

from datetime import timedelta

import pytest
from sandpod_operator.decide import decide
from sandpod_operator.objects import Json
from sandpod_operator.observations import Refusal
from sandpod_operator.reasons import Reason

from tests.support.operator_objects import (
    INSTALLATION,
    NOW,
    UID,
    asleep,
    at,
    ended_asleep,
    pod,
    running,
    sandbox,
    situation,
    status_of,
    up,
    wanted_awake,
)
from tests.support.operator_table import Row, check

RUNS = up(since=-90)

PAUSED: Json = {"paused": True}

QUOTA = Refusal(
    sandbox_uid=UID,
    generation=1,
    reason=Reason.QUOTA_EXCEEDED,
    message="exceeded quota: q, used: pods=2",
    retry_at=NOW + timedelta(seconds=60),
)


def refused_a_start(*, since: float = -20) -> Json:
    """It slept, somebody wanted it awake, and it may not start."""
    sleep: Json = {"asleepSince": at(since), "sleepReason": "Idle"}
    return status_of("Pending", "QuotaExceeded", **sleep)


MAX_AGE: Json = {"lifetime": {"maxAge": "100s"}}

AFTER_ASLEEP: Json = {"lifetime": {"deleteAfterAsleep": "50s"}}

BOTH: Json = {"lifetime": {"maxAge": "100s", "deleteAfterAsleep": "24h"}}

LIFETIME = {
    "too old, it is deleted, whatever it does": Row(
        situation(sandbox(MAX_AGE, running()), pod(status=RUNS)),
        writes=["delete sandboxes"],
        tells=["Expired"],
    ),
    "also when the operator was away at that time": Row(
        situation(sandbox(MAX_AGE, running(), creationTimestamp=at(-9000)), pod(status=RUNS)),
        writes=["delete sandboxes"],
        tells=["Expired"],
    ),
    "before, it is looked at in time": Row(
        situation(sandbox(MAX_AGE, running(), creationTimestamp=at(-99)), pod(status=RUNS)),
        again_in=1,
    ),
    "asleep too long, it is deleted": Row(
        situation(sandbox(AFTER_ASLEEP, asleep())),
        writes=["delete sandboxes"],
        tells=["Expired"],
    ),
    "and paused, too": Row(
        situation(sandbox({**AFTER_ASLEEP, **PAUSED}, asleep("Paused"), **wanted_awake())),
        writes=["delete sandboxes"],
        tells=["Expired"],
    ),
    "not long enough, it is looked at in time": Row(
        situation(sandbox(AFTER_ASLEEP, asleep(since=-20))),
        again_in=30,
    ),
    "wanted awake in the last moment, it wakes": Row(
        situation(sandbox(AFTER_ASLEEP, asleep(), **wanted_awake())),
        writes=["create pod"],
    ),
    "wanted awake and not allowed to start, its time begins anew": Row(
        situation(
            sandbox(AFTER_ASLEEP, asleep(), **wanted_awake()),
            refusal=QUOTA,
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "QuotaExceeded"),
        status={"asleepSince": at(0), "wakeObserved": None, "wakes": None},
        tells=["QuotaExceeded"],
        again_in=50,
    ),
    "and goes on while it waits": Row(
        situation(sandbox(AFTER_ASLEEP, refused_a_start(since=-50), **wanted_awake())),
        writes=["delete sandboxes"],
        tells=["Expired"],
    ),
    "it begins when it falls asleep": Row(
        situation(sandbox(AFTER_ASLEEP, running()), pod(status=ended_asleep())),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Idle"),
        tells=["Idle"],
        again_in=50,
    ),
    "awake, it has as long as it wants": Row(
        situation(sandbox(AFTER_ASLEEP, running()), pod(status=RUNS)),
    ),
    "with another ten years to live, that is no overflow": Row(
        situation(sandbox({"lifetime": {"maxAge": "87600h"}}, running()), pod(status=RUNS)),
        again_in=87600 * 3600 - 100,
    ),
}

CLOCKS = {
    "a pause from before the clock was put back is over": Row(
        situation(
            sandbox(status=status_of("Pending", "CrashedAtStart", startFailures=3, nextStartAt=at(3604)))
        ),
        writes=["create pod"],
    ),
    "a sleep that begins in the future is a sleep": Row(
        situation(sandbox(status=asleep(since=3600))),
    ),
    "and one that is over is over": Row(
        situation(sandbox(status=asleep(since=3600), **wanted_awake())),
        writes=["create pod"],
    ),
    "work in the future was now": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep(lastActiveAt=at(3600)))),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Idle"),
        status={"lastActiveAt": at(0)},
        tells=["Idle"],
    ),
}


TABLES = {
    "its lifetime": LIFETIME,
    "the clock jumps": CLOCKS,
}
TABLE = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (sandbox(BOTH, asleep(since=-20)), "lifetime.maxAge"),
        (sandbox(AFTER_ASLEEP, asleep(since=-60)), "lifetime.deleteAfterAsleep"),
    ],
)
def test_the_last_event_names_the_lifetime_that_is_over(given: Json, said: str) -> None:
    plan = decide(situation(given), now=NOW, installation=INSTALLATION)

    assert [said in notice.message for notice in plan.notices] == [True]
