"""How a sandbox falls asleep, and is kept asleep by decree."""

from typing import Any

import pytest
from sandpod_operator.objects import Json
from sandpod_operator.observations import Errand

from tests.support.operator_objects import (
    POD_UID,
    answer,
    asleep,
    at,
    bound,
    claim,
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

RUNS = up(since=-90)

SESSIONS = [{"id": "main", "cwd": "/workspace/app"}]

VOLUME: Json = {"workspace": {"size": "1Gi"}}

PAUSED: Json = {"paused": True}

SLEEPING = {"podName": None, "podUID": None, "podIP": None, "startedAt": None, "asleepSince": at(0)}


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
            claims=(claim(),),
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


TABLES = {
    "falling asleep": FALLING_ASLEEP,
    "paused": PAUSE,
    "unpaused": UNPAUSED,
}
TABLE = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])
