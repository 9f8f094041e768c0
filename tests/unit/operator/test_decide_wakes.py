"""How a sandbox wakes, and is kept awake."""

import pytest
from sandpod_operator.objects import Json
from sandpod_operator.observations import Errand, Outcome

from tests.support.operator_objects import (
    answer,
    asleep,
    at,
    ended,
    ended_asleep,
    pod,
    running,
    sandbox,
    situation,
    starting,
    status_of,
    up,
    wanted_awake,
)
from tests.support.operator_table import Row, check

WAKE = "2026-11-18T12:00:00Z"

RUNS = up(since=-90)

PAUSED: Json = {"paused": True}


def refused_a_start(*, since: float = -20) -> Json:
    """It slept, somebody wanted it awake, and it may not start."""
    sleep: Json = {"asleepSince": at(since), "sleepReason": "Idle"}
    return status_of("Pending", "QuotaExceeded", **sleep)


WAKING = {
    "one that sleeps starts": Row(
        situation(sandbox(status=asleep(), **wanted_awake())),
        writes=["create pod"],
    ),
    "the start has taken the request up": Row(
        situation(sandbox(status=asleep(), **wanted_awake()), pod()),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        status={"wakeObserved": WAKE, "asleepSince": None, "sleepReason": None, "wakes": 1},
        again_in=55,
    ),
    "a request that was taken up is taken up once": Row(
        situation(sandbox(status=asleep(wakeObserved=WAKE), **wanted_awake())),
    ),
    "a request that was there before the sandbox is taken up by its first start": Row(
        situation(sandbox(**wanted_awake()), pod()),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        status={"wakeObserved": WAKE, "wakes": None},
        again_in=55,
    ),
    "one that was taken away is none": Row(
        situation(sandbox(status=asleep(wakeObserved=WAKE))),
    ),
    "a very long request is taken up as far as the status holds it": Row(
        situation(sandbox(status=asleep(wakeObserved="x" * 256), **wanted_awake("x" * 300))),
    ),
    "one that cannot start keeps the request": Row(
        situation(sandbox(status=asleep(), **wanted_awake()), missing="SandboxTemplate python"),
        writes=["status"],
        phase="Pending",
        ready=("False", "TemplateMissing"),
        status={"wakeObserved": None},
        tells=["TemplateMissing"],
    ),
    "one that runs is asked to stay": Row(
        situation(sandbox(status=running(), **wanted_awake()), pod(status=RUNS)),
        asks=Errand.STAY,
    ),
    "it stays: the request is fulfilled": Row(
        situation(
            sandbox(status=running(), **wanted_awake()),
            pod(status=RUNS),
            answer=answer(Errand.STAY, subject=WAKE),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"wakeObserved": WAKE},
    ),
    "it is about to sleep: the request stays open": Row(
        situation(
            sandbox(status=running(), **wanted_awake()),
            pod(status=RUNS),
            answer=answer(Errand.STAY, subject=WAKE, outcome=Outcome.REFUSED),
        ),
    ),
    "what it said to an earlier request does not count": Row(
        situation(
            sandbox(status=running(), **wanted_awake("later")),
            pod(status=RUNS),
            answer=answer(Errand.STAY, subject=WAKE),
        ),
        asks=Errand.STAY,
    ),
    "a request that the bind has told of is fulfilled by it": Row(
        situation(
            sandbox(status=starting(wakes=1), **wanted_awake()),
            pod(status=RUNS),
            answer=answer(Errand.BIND, wake=WAKE),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"wakeObserved": WAKE},
        tells=["Started"],
    ),
    "one that came while the bind was under way stays open": Row(
        situation(
            sandbox(status=starting(wakes=1), **wanted_awake()),
            pod(status=RUNS),
            answer=answer(Errand.BIND),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"wakeObserved": None},
        tells=["Started"],
    ),
    "and so does one that came before the bind was answered": Row(
        situation(sandbox(status=starting(), **wanted_awake()), pod(status=up())),
        status={"wakeObserved": None},
        asks=Errand.BIND,
        again_in=57,
    ),
    "with a request open, its sleep is followed by a start at once": Row(
        situation(sandbox(status=running(), **wanted_awake()), pod(status=ended_asleep())),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "Waking"),
        status={"asleepSince": None, "wakeObserved": None, "podUID": None, "nextStartAt": None},
    ),
    "a request that comes when the sleep is recorded and the pod not yet gone": Row(
        situation(sandbox(status=asleep(), **wanted_awake()), pod(status=ended_asleep())),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "Waking"),
        status={"asleepSince": at(-50)},
    ),
    "once nobody wants one awake that could not start, it sleeps as before": Row(
        situation(sandbox(status=refused_a_start())),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Idle"),
        status={"asleepSince": at(-20), "sleepReason": "Idle"},
        tells=["Idle"],
    ),
    "paused while it could not start, it sleeps by that": Row(
        situation(sandbox(PAUSED, refused_a_start(), **wanted_awake())),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Paused"),
        status={"asleepSince": at(-20), "sleepReason": "Paused"},
        tells=["Paused"],
    ),
    "allowed to start after all, it does": Row(
        situation(sandbox(status=refused_a_start(), **wanted_awake())),
        writes=["create pod"],
    ),
    "and is awake then": Row(
        situation(sandbox(status=refused_a_start(), **wanted_awake()), pod()),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        status={"asleepSince": None, "sleepReason": None, "wakeObserved": WAKE, "wakes": 1},
        again_in=55,
    ),
    "a crash with a request open is a crash": Row(
        situation(sandbox(status=running(startedAt=at(-5)), **wanted_awake()), pod(status=ended(1))),
        writes=["status", "force-delete pod"],
        phase="Pending",
        ready=("False", "Crashed"),
        status={"nextStartAt": at(1), "wakeObserved": None},
        tells=["Crashed"],
    ),
}

CHANGED = {
    "another sleepAfter is told, and until it is heard nobody claims to know": Row(
        situation(sandbox({"sleepAfter": "5m"}, running()), pod(status=RUNS)),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"sleepAfter": None},
        asks=Errand.ADJUST,
    ),
    "it is heard": Row(
        situation(
            sandbox({"sleepAfter": "5m"}, running(sleepAfter=None)),
            pod(status=RUNS),
            answer=answer(Errand.ADJUST, subject="5m"),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"sleepAfter": "5m"},
    ),
    "keepAlive is told like another time": Row(
        situation(
            sandbox({"keepAlive": True}, running(sleepAfter=None)),
            pod({"keepAlive": True}, RUNS),
            answer=answer(Errand.ADJUST, subject="never"),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"sleepAfter": "never"},
    ),
    "an answer about what is not wanted any more does not count": Row(
        situation(
            sandbox(status=running(sleepAfter=None)),
            pod(status=RUNS),
            answer=answer(Errand.ADJUST, subject="5m"),
        ),
        asks=Errand.ADJUST,
    ),
    "nor one that was given before the last change": Row(
        situation(
            sandbox({"sleepAfter": "5m"}, running()),
            pod(status=RUNS),
            answer=answer(Errand.ADJUST, subject="5m"),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"sleepAfter": None},
        asks=Errand.ADJUST,
    ),
    "a runtime that was found bound is told what nobody knows that it knows": Row(
        situation(sandbox(status=running(sleepAfter=None)), pod(status=RUNS)),
        asks=Errand.ADJUST,
    ),
    "one that refuses to be told is let be": Row(
        situation(
            sandbox(status=running(sleepAfter=None)),
            pod(status=RUNS),
            answer=answer(Errand.ADJUST, subject="10m", outcome=Outcome.REFUSED),
        ),
    ),
}


TABLES = {
    "wanted awake": WAKING,
    "changed while it runs": CHANGED,
}
TABLE = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])
