"""What becomes of a sandbox whose node is drained."""

from dataclasses import replace
from typing import Any

import pytest
from sandpod_crds.models import Sandbox, SandboxPolicy
from sandpod_crds.names import LABEL_PROTECTED
from sandpod_operator.case import Case
from sandpod_operator.objects import Json
from sandpod_operator.permission import Rules

from tests.support.operator_objects import (
    INSTALLATION,
    NOW,
    POD_UID,
    asleep,
    at,
    conditions_of,
    ended_asleep,
    pod,
    running,
    sandbox,
    situation,
    starting,
    up,
    wanted_awake,
)
from tests.support.operator_table import Row, check

RUNS = up(since=-90)

PAUSED: Json = {"paused": True}

# The node is drained: the eviction has marked the pod, and its time runs.
EVICTED: Json = {"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}


def drained(status: Json) -> Json:
    return {**status, "conditions": [*status.get("conditions", []), EVICTED]}


def draining(reason: str = "Pausing", *, since: float = -10, **fields: Any) -> Json:
    conditions = conditions_of(reason, ready=False)
    for condition in conditions:
        if condition["type"] == "Ready":
            condition["lastTransitionTime"] = at(since)
    return {**running(**fields), "phase": "Draining", "conditions": conditions}


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


@pytest.mark.parametrize("limits", [{}, {"maxSleepAfter": "1h"}], ids=["free", "limited"])
@pytest.mark.parametrize("spec", [{}, {"keepAlive": True}], ids=["sleeps", "stays awake"])
def test_a_pod_is_made_with_the_label_that_it_would_get(spec: Json, limits: Json) -> None:
    policy = SandboxPolicy.model_validate({"metadata": {"name": "limits"}, "spec": limits})
    given = replace(situation(sandbox(spec)), rules=Rules(policies=(policy,)))
    case = Case(given, Sandbox.model_validate(sandbox(spec)), now=NOW, installation=INSTALLATION)

    assert case.holds_up_drains is (spec == {} or limits != {})
    assert (LABEL_PROTECTED in case.wanted_pod["metadata"]["labels"]) is case.holds_up_drains


TABLES = {
    "its node is drained": DRAINED,
}
TABLE = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])
