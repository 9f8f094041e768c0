"""How a sandbox starts, stays, and goes. `decide` is the specification; this is what it specifies."""

import pytest
from sandpod_operator.observations import Errand

from tests.support.operator_objects import (
    POD_UID,
    UID,
    at,
    bound,
    on_node,
    pod,
    running,
    sandbox,
    situation,
    starting,
    stranger,
    up,
    waiting,
)
from tests.support.operator_table import Row, check

OWNER = {"apiVersion": "sandpod.dev/v1alpha1", "kind": "Sandbox", "name": "box", "controller": True}

COLD_START = {
    "a new sandbox gets its pod before anything is written about it": Row(
        situation(sandbox()),
        writes=["create pod"],
    ),
    "a pod that was just made is told of in the status": Row(
        situation(sandbox(), pod()),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        status={"podName": "box", "podUID": POD_UID, "image": "sandpod/sandbox:0.1.0", "podIP": None},
        again_in=55,
    ),
    "a pod on its way to a node costs no write": Row(
        situation(sandbox(status=starting()), pod(status=waiting("ContainerCreating"))),
        again_in=55,
    ),
    "a pod with an address is asked": Row(
        situation(sandbox(status=starting()), pod(status=up(since=-1))),
        asks=Errand.BIND,
        again_in=59,
    ),
    "a pod without an address cannot be asked": Row(
        situation(sandbox(status=starting()), pod(status=up(since=-1, ip=None))),
        again_in=59,
    ),
    "a runtime that has answered makes the sandbox run": Row(
        situation(sandbox(status=starting()), pod(status=up()), answer=bound(spec_hash="abc")),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={
            "podIP": "10.1.0.7",
            "podUID": POD_UID,
            "runtimeVersion": "0.1.0",
            "startedAt": at(0),
            "specHash": "abc",
        },
    ),
    "a runtime that answered before any status was written makes it run at once": Row(
        situation(sandbox(), pod(status=up()), answer=bound()),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
    ),
    "a slow start is told of after a minute": Row(
        situation(sandbox(status=starting()), pod(status=on_node(), creationTimestamp=at(-60))),
        writes=["status"],
        phase="Starting",
        ready=("False", "StartingSlowly"),
        says="kubectl describe pod box",
        tells=["StartingSlowly"],
    ),
}

STABLE = {
    "a stable sandbox costs no write": Row(
        situation(sandbox(status=running()), pod(status=up(since=-90))),
    ),
    "a restarted operator neither asks nor writes about a sandbox that runs": Row(
        situation(sandbox(status=running(restarts=3)), pod(status=up(since=-1000))),
    ),
    "a sandbox that failed to start before is forgiven after a minute": Row(
        situation(sandbox(status=running(startFailures=3)), pod(status=up(since=-90))),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        status={"startFailures": None},
    ),
    "and not before": Row(
        situation(sandbox(status=running(startFailures=3, startedAt=at(-20))), pod(status=up(since=-20))),
        again_in=40,
    ),
}

OWNERSHIP = {
    "somebody else's pod is left alone": Row(
        situation(sandbox(), stranger()),
        writes=["status"],
        phase="Pending",
        ready=("False", "NameTaken"),
        says="Delete it (kubectl delete pod box -n team), or give the sandbox another name",
        tells=["NameTaken"],
    ),
    "the pod of an earlier sandbox of this name goes first": Row(
        situation(sandbox(), stranger(ownerReferences=[{**OWNER, "uid": "another"}])),
        writes=["status", "delete pod"],
        phase="Pending",
        ready=("False", "EarlierPod"),
    ),
    "the pod of a deleted sandbox goes with it": Row(
        situation(None, pod(status=up()), departed=UID),
        writes=["delete pod"],
    ),
    "a pod without a sandbox is left to the garbage collector": Row(
        situation(None, pod(status=up())),
    ),
    "the pod of a sandbox that is being deleted goes": Row(
        situation(sandbox(deletionTimestamp=at(0)), pod(status=up())),
        writes=["delete pod"],
    ),
    "the pod of a sandbox that is deleted with --cascade=orphan goes too": Row(
        situation(sandbox(deletionTimestamp=at(0), finalizers=["orphan"]), pod(status=up())),
        writes=["delete pod"],
    ),
    "nothing starts for a sandbox that is being deleted": Row(
        situation(sandbox(deletionTimestamp=at(0))),
        writes=["delete networkpolicies"],
    ),
}

TABLE = {**COLD_START, **STABLE, **OWNERSHIP}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])
