"""How a sandbox falls asleep, is kept asleep or awake, wakes, and how its lifetime ends."""

from datetime import timedelta
from typing import Any

import pytest
from sandpod_operator.objects import Json
from sandpod_operator.observations import Errand, Outcome, Refusal
from sandpod_operator.reasons import Reason

from tests.support.operator_objects import (
    NOW,
    POD_UID,
    UID,
    answer,
    asleep,
    at,
    bound,
    conditions_of,
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
SESSIONS = [{"id": "main", "cwd": "/workspace/app"}]
VOLUME: Json = {"workspace": {"size": "1Gi"}}
PAUSED: Json = {"paused": True}
SLEEPING = {"podName": None, "podUID": None, "podIP": None, "startedAt": None, "asleepSince": at(0)}
QUOTA = Refusal(
    sandbox_uid=UID,
    generation=1,
    reason=Reason.QUOTA_EXCEEDED,
    message="exceeded quota: q, used: pods=2",
    retry_at=NOW + timedelta(seconds=60),
)
# The node is drained: the eviction has marked the pod, and its time runs.
EVICTED: Json = {"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}


def drained(status: Json) -> Json:
    return {**status, "conditions": [*status.get("conditions", []), EVICTED]}


def refused_a_start(*, since: float = -20) -> Json:
    """It slept, somebody wanted it awake, and it may not start."""
    sleep: Json = {"asleepSince": at(since), "sleepReason": "Idle"}
    return status_of("Pending", "QuotaExceeded", **sleep)


def draining(reason: str = "Pausing", *, since: float = -10, **fields: Any) -> Json:
    conditions = conditions_of(reason, ready=False)
    for condition in conditions:
        if condition["type"] == "Ready":
            condition["lastTransitionTime"] = at(since)
    return {**running(**fields), "phase": "Draining", "conditions": conditions}


FALLING_ASLEEP = {
    "nobody worked in it: it sleeps, and its pod goes": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep())),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Idle"),
        says="The next request wakes it.",
        status={**SLEEPING, "sleepReason": "Idle", "lastActiveAt": at(-600), "restarts": None},
        tells=["Idle"],
    ),
    "its sessions are remembered when a workspace has them": Row(
        situation(
            sandbox(VOLUME, running(workspaceClaim="box-workspace")),
            pod(VOLUME, ended_asleep(sessions=SESSIONS)),
            fenced=True,
        ),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Idle"),
        status={"sessions": SESSIONS},
        tells=["Idle"],
    ),
    "and not when they went with the pod": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep(sessions=SESSIONS))),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Idle"),
        status={"sessions": []},
        tells=["Idle"],
    ),
    "somebody asked it to sleep": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep("requested"))),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Requested"),
        status={"sleepReason": "Requested"},
        tells=["Requested"],
    ),
    "a sleep that was recorded before the operator was killed is not recorded again": Row(
        situation(sandbox(status=asleep()), pod(status=ended_asleep())),
        writes=["force-delete pod"],
    ),
    "the pod of a sandbox that sleeps is deleted while its end is not recorded": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep(), deletionTimestamp=at(20))),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Idle"),
        status={"restarts": None},
        tells=["Idle"],
        again_in=50,
    ),
    "last words of a runtime that crashed are not believed": Row(
        situation(sandbox(status=running()), pod(status=ended(1, message='{"reason": "idle"}'))),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "Crashed"),
        tells=["Crashed"],
    ),
    "a runtime that was terminated has not slept": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep("terminated"))),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "RuntimeExited"),
        status={"restarts": 1},
        tells=["RuntimeExited"],
    ),
    "a sandbox that sleeps costs no write": Row(situation(sandbox(status=asleep()))),
    "nor does one whose pod is not quite gone": Row(
        situation(sandbox(status=asleep()), pod(status=ended_asleep(), deletionTimestamp=at(20))),
        again_in=50,
    ),
}

PAUSE = {
    "one that runs is told to sleep": Row(
        situation(sandbox(PAUSED, running(), generation=2), pod(status=RUNS)),
        writes=["status"],
        phase="Draining",
        ready=("False", "Pausing"),
        status={"podUID": POD_UID},
        asks=Errand.SLEEP,
        again_in=30,
    ),
    "and not told again when it has heard": Row(
        situation(sandbox(PAUSED, draining()), pod(status=RUNS), answer=answer(Errand.SLEEP)),
        again_in=20,
    ),
    "but again by an operator that was restarted": Row(
        situation(sandbox(PAUSED, draining()), pod(status=RUNS)),
        asks=Errand.SLEEP,
        again_in=20,
    ),
    "one that has ended because of it is asleep": Row(
        situation(sandbox(PAUSED, draining()), pod(status=ended_asleep("requested", detail="paused"))),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Paused"),
        says="requests do not wake it",
        status={**SLEEPING, "sleepReason": "Paused"},
        tells=["Paused"],
    ),
    "one that does not end is ended": Row(
        situation(sandbox(PAUSED, draining(since=-30)), pod(status=RUNS), answer=answer(Errand.SLEEP)),
        writes=["status", "delete pod"],
        phase="Asleep",
        ready=("False", "Paused"),
        tells=["Paused"],
    ),
    "one that crashes on its way is asleep all the same": Row(
        situation(sandbox(PAUSED, draining()), pod(status=ended(137))),
        writes=["status", "force-delete pod"],
        phase="Asleep",
        ready=("False", "Paused"),
        status={"restarts": None},
        tells=["Paused"],
    ),
    "one that vanishes on its way, too": Row(
        situation(sandbox(PAUSED, draining())),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Paused"),
        status=SLEEPING,
        tells=["Paused"],
    ),
    "while it starts, its pod is given up": Row(
        situation(sandbox(PAUSED, starting(), generation=2), pod(status=up())),
        writes=["status", "delete pod"],
        phase="Asleep",
        ready=("False", "Paused"),
        tells=["Paused"],
    ),
    "while it is set up, too": Row(
        situation(
            sandbox({**PAUSED, "setup": ["make"]}, starting(setup={"result": "Running", "message": ""})),
            pod({"setup": ["make"]}, up()),
            answer=bound(),
        ),
        writes=["status", "delete pod"],
        phase="Asleep",
        ready=("False", "Paused"),
        status={"setup": None},
        tells=["Paused"],
    ),
    "paused from the beginning, it never starts": Row(
        situation(sandbox(PAUSED)),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Paused"),
        tells=["Paused"],
    ),
    "asleep already, it says why it stays so": Row(
        situation(sandbox(PAUSED, asleep())),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Paused"),
        status={"sleepReason": "Paused", "asleepSince": at(-50), "wakes": None},
        tells=["Paused"],
    ),
    "a request does not wake it": Row(
        situation(sandbox(PAUSED, asleep("Paused"), **wanted_awake())),
    ),
    "waiting for another start, it sleeps instead": Row(
        situation(
            sandbox(PAUSED, status_of("Failed", "CrashedAtStart", startFailures=7, nextStartAt=at(200)))
        ),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Paused"),
        status={"startFailures": None, "nextStartAt": None},
        tells=["Paused"],
    ),
}

UNPAUSED = {
    "asleep, it starts": Row(
        situation(sandbox(status=asleep("Paused"))),
        writes=["create pod"],
    ),
    "before it has ended, it is up again as long as it lives": Row(
        situation(sandbox(status=draining()), pod(status=RUNS), answer=answer(Errand.SLEEP)),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
    ),
    "and its end is followed by a start": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep("requested", detail="paused"))),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "Waking"),
        status={"startFailures": None, "nextStartAt": None, "asleepSince": None},
    ),
    "after a pause if it had just started, as code in it may say the same again and again": Row(
        situation(
            sandbox(status=running(startedAt=at(-3), startFailures=2)),
            pod(status=ended_asleep("requested", detail="paused")),
        ),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "Waking"),
        status={"startFailures": 3, "nextStartAt": at(4)},
    ),
    "what was accounted for is not counted twice": Row(
        situation(
            sandbox(status=status_of("Starting", "Waking", startFailures=3, nextStartAt=at(4))),
            pod(status=ended_asleep("requested", detail="paused")),
        ),
        writes=["force-delete pod"],
    ),
    "and the pause is kept": Row(
        situation(sandbox(status=status_of("Starting", "Waking", startFailures=3, nextStartAt=at(4)))),
        again_in=4,
    ),
}

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

DRAINED = {
    "what it says at its end is waited for": Row(
        situation(sandbox(status=running()), pod(status=drained(RUNS), deletionTimestamp=at(30))),
        writes=["status"],
        phase="Draining",
        ready=("False", "NodeDraining"),
        status={"podUID": POD_UID},
        again_in=60,
    ),
    "a restarted operator waits on": Row(
        situation(
            sandbox(status=draining("NodeDraining")), pod(status=drained(RUNS), deletionTimestamp=at(20))
        ),
        again_in=50,
    ),
    "quiet, it sleeps": Row(
        situation(
            sandbox(status=draining("NodeDraining")),
            pod(status=drained(ended_asleep("terminated")), deletionTimestamp=at(20)),
        ),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Node"),
        status={"sleepReason": "Node", "restarts": None},
        tells=["Node"],
        again_in=50,
    ),
    "busy, it starts elsewhere": Row(
        situation(
            sandbox(status=draining("NodeDraining")),
            pod(status=drained(ended_asleep("terminated", lastActiveAt=at(-1))), deletionTimestamp=at(20)),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
        says="Eviction API: evicting",
        tells=["PodDeleted"],
        status={"restarts": 1},
        again_in=50,
    ),
    "quiet and wanted awake, it starts elsewhere, and that is no failure": Row(
        situation(
            sandbox(status=draining("NodeDraining"), **wanted_awake()),
            pod(status=drained(ended_asleep("terminated")), deletionTimestamp=at(20)),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "Waking"),
        status={"restarts": None, "wakeObserved": None, "asleepSince": None},
        again_in=50,
    ),
    "quiet and never to sleep, it starts elsewhere": Row(
        situation(
            sandbox({"keepAlive": True}, draining("NodeDraining", sleepAfter="never")),
            pod({"keepAlive": True}, drained(ended_asleep("terminated")), deletionTimestamp=at(20)),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
        tells=["PodDeleted"],
        again_in=50,
    ),
    "gone without last words, it starts elsewhere": Row(
        situation(sandbox(status=draining("NodeDraining"))),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
        status={"restarts": 1},
        tells=["PodDeleted"],
        again_in=0,
    ),
    "asleep because of its node, it waits for a request like any other": Row(
        situation(sandbox(status=asleep("Node"))),
    ),
    "one that nobody has worked in yet is started elsewhere at once": Row(
        situation(sandbox(status=starting()), pod(status=drained(up()), deletionTimestamp=at(30))),
        writes=["status"],
        phase="Pending",
        ready=("False", "PodDeleted"),
        tells=["PodDeleted"],
        again_in=60,
    ),
    "a silent node has no last words to wait for": Row(
        situation(
            sandbox(status=running()),
            pod(status=drained(up(since=-90, ready="False")), deletionTimestamp=at(30)),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
        tells=["PodDeleted"],
        again_in=60,
    ),
    "paused in the meantime, it sleeps": Row(
        situation(
            sandbox(PAUSED, draining("NodeDraining")),
            pod(status=drained(RUNS), deletionTimestamp=at(20)),
        ),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Paused"),
        tells=["Paused"],
        again_in=50,
    ),
    "deleted in the meantime, nothing is said or started any more": Row(
        situation(
            sandbox(status=draining("NodeDraining"), deletionTimestamp=at(0)),
            pod(status=drained(RUNS), deletionTimestamp=at(20)),
        ),
    ),
}

MAX_AGE: Json = {"lifetime": {"maxAge": "100s"}}
AFTER_ASLEEP: Json = {"lifetime": {"deleteAfterAsleep": "50s"}}

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
    "falling asleep": FALLING_ASLEEP,
    "paused": PAUSE,
    "unpaused": UNPAUSED,
    "wanted awake": WAKING,
    "changed while it runs": CHANGED,
    "its node is drained": DRAINED,
    "its lifetime": LIFETIME,
    "the clock jumps": CLOCKS,
}
TABLE = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])
