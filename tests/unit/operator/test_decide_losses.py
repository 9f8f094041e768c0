"""What the API server refuses, and what happens to a pod that was running."""

from datetime import timedelta

import pytest
from sandpod_operator.objects import Json, owner_reference
from sandpod_operator.observations import Refusal
from sandpod_operator.reasons import Reason

from tests.support.operator_objects import (
    NOW,
    POD_UID,
    UID,
    at,
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
)
from tests.support.operator_table import Row, check


def refusal(reason: Reason, *, generation: int = 1, retry_in: float = 10, message: str = "no") -> Refusal:
    return Refusal(
        sandbox_uid=UID,
        generation=generation,
        reason=reason,
        message=message,
        retry_at=NOW + timedelta(seconds=retry_in),
    )


REFUSED = {
    "quota used up": Row(
        situation(
            sandbox(), refusal=refusal(Reason.QUOTA_EXCEEDED, message="exceeded quota: q, used: pods=2")
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "QuotaExceeded"),
        says="exceeded quota: q, used: pods=2. Delete or shrink",
        status={"nextStartAt": at(10)},
        tells=["QuotaExceeded"],
        again_in=10,
    ),
    "the same refusal again is not told again": Row(
        situation(
            sandbox(status=status_of("Pending", "QuotaExceeded", nextStartAt=at(-1))),
            refusal=refusal(Reason.QUOTA_EXCEEDED, retry_in=20),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "QuotaExceeded"),
        status={"nextStartAt": at(20)},
        again_in=20,
    ),
    "quota is asked for again in time": Row(
        situation(
            sandbox(status=status_of("Pending", "QuotaExceeded", nextStartAt=at(0))),
            refusal=refusal(Reason.QUOTA_EXCEEDED, retry_in=0),
        ),
        writes=["create pod"],
    ),
    "a bad podTemplate waits for another spec": Row(
        situation(
            sandbox(),
            refusal=refusal(
                Reason.INVALID_POD_TEMPLATE, retry_in=300, message="spec.volumes[0].name: Required value"
            ),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "InvalidPodTemplate"),
        says="spec.volumes[0].name: Required value",
        tells=["InvalidPodTemplate"],
        again_in=300,
    ),
    "and another spec is tried at once": Row(
        situation(
            sandbox(status=status_of("Pending", "InvalidPodTemplate", nextStartAt=at(250)), generation=2),
            refusal=refusal(Reason.INVALID_POD_TEMPLATE, retry_in=250),
        ),
        writes=["create pod"],
    ),
    "a podTemplate that cannot be merged never reaches the API server": Row(
        situation(sandbox({"podTemplate": {"spec": {"containers": {"name": "x"}}}})),
        writes=["status"],
        phase="Pending",
        ready=("False", "InvalidPodTemplate"),
        says="podTemplate.spec.containers must be a list",
        tells=["InvalidPodTemplate"],
    ),
    "an earlier sandbox's refusal is no reason to wait": Row(
        situation(sandbox(uid="5a0d0001-0000-4000-8000-000000000002"), refusal=refusal(Reason.FORBIDDEN)),
        writes=["create pod"],
    ),
}

LOST = {
    "a pod deleted by hand comes back": Row(
        situation(
            sandbox(status=running()),
            pod(status=up(since=-90), deletionTimestamp=at(30)),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
        says="by somebody, or with its node",
        status={"restarts": 1, "podUID": None, "podIP": None, "startedAt": None, "startFailures": None},
        tells=["PodDeleted"],
        again_in=60,
    ),
    "when it is gone another is made": Row(
        situation(sandbox(status=status_of("Starting", "PodDeleted", restarts=1))),
        writes=["create pod"],
    ),
    "a pod that vanished is accounted for first": Row(
        situation(sandbox(status=running(restarts=1))),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
        status={"restarts": 2, "podUID": None},
        tells=["PodDeleted"],
        again_in=0,
    ),
    "a sandbox that dies in its first minute waits before the next start": Row(
        situation(sandbox(status=running(startedAt=at(-59), startFailures=1)), pod(status=ended(1))),
        writes=["status", "force-delete pod"],
        phase="Pending",
        ready=("False", "Crashed"),
        status={"restarts": 1, "startFailures": 2, "nextStartAt": at(2)},
        tells=["Crashed"],
    ),
    "out of memory": Row(
        situation(sandbox(status=running()), pod(status=ended(137, reason="OOMKilled"))),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "OOMKilled"),
        says="Raise spec.resources.limits.memory",
        status={"restarts": 1},
        tells=["OOMKilled"],
    ),
    "evicted by its node": Row(
        situation(
            sandbox(status=running()),
            pod(status={"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}),
        ),
        writes=["status", "delete pod"],
        phase="Starting",
        ready=("False", "Evicted"),
        says="The node was low on memory.",
        status={"restarts": 1},
        tells=["Evicted"],
    ),
    "evicted while its runtime ended in time": Row(
        situation(
            sandbox(status=running()),
            pod(
                status={
                    **ended_asleep("terminated"),
                    "reason": "Evicted",
                    "message": "The node was low on memory.",
                }
            ),
        ),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "Evicted"),
        says="The node was low on memory.",
        status={"restarts": 1},
        tells=["Evicted"],
    ),
    "its node was shut down": Row(
        situation(
            sandbox(status=running()),
            pod(
                status={
                    **ended_asleep("terminated"),
                    "reason": "Terminated",
                    "message": "Pod was terminated in response to imminent node shutdown.",
                }
            ),
        ),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "PodFailed"),
        says="imminent node shutdown",
        status={"restarts": 1},
        tells=["PodFailed"],
    ),
    "the runtime was told to end from inside": Row(
        situation(sandbox(status=running()), pod(status=ended_asleep("terminated"))),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "RuntimeExited"),
        says="exited with code 143, as a signal told it to. It is",
        tells=["RuntimeExited"],
    ),
    "the runtime ended by itself": Row(
        situation(sandbox(status=running()), pod(status=ended(0, reason="Completed"))),
        writes=["status", "force-delete pod"],
        phase="Starting",
        ready=("False", "RuntimeExited"),
        tells=["RuntimeExited"],
    ),
    "the node does not respond": Row(
        situation(sandbox(status=running()), pod(status=up(since=-90, ready="False"))),
        writes=["status"],
        phase="Running",
        ready=("False", "NodeNotResponding"),
        status={"podUID": POD_UID, "restarts": None},
        tells=["NodeNotResponding"],
    ),
    "the node is back": Row(
        situation(
            sandbox(status={**running(), "conditions": conditions_of("NodeNotResponding", ready=False)}),
            pod(status=up(since=-90)),
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
    ),
    "the runtime on a silent node is not asked": Row(
        situation(sandbox(status=starting()), pod(status=up(since=-1, ready="False"))),
        again_in=59,
    ),
    "a pod whose node does not let it end is waited for": Row(
        situation(
            sandbox(status=status_of("Starting", "PodDeleted", restarts=1)),
            pod(status=up(since=-90), deletionTimestamp=at(-29)),
        ),
        again_in=1,
    ),
    "and forced out": Row(
        situation(
            sandbox(status=status_of("Starting", "PodDeleted", restarts=1)),
            pod(status=up(since=-90), deletionTimestamp=at(-30)),
        ),
        writes=["force-delete pod"],
        again_in=30,
    ),
}

VOLUME = {"workspace": {"size": "1Gi"}}
LOST_BEFORE = status_of("Starting", "PodDeleted", restarts=1, workspaceClaim="box-workspace")


def leaving(status: Json, *, since: float) -> Json:
    found = pod(VOLUME, status, deletionTimestamp=at(since))
    found["spec"]["nodeName"] = "node-1"
    return found


# Its node does not say anything any more, and Kubernetes has given it up.
SILENT = leaving(up(since=-90, ready="False"), since=0)
EARLIER = leaving(up(since=-90, ready="False"), since=0)
EARLIER["metadata"] |= {
    "uid": "earlier",
    "ownerReferences": [owner_reference(kind="Sandbox", name="box", uid="gone")],
}
GONE = "kubectl delete pod box -n team --grace-period=0 --force"

WITH_A_VOLUME = {
    "nothing may write to the volume beside a node that is lost": Row(
        situation(sandbox(VOLUME, running()), SILENT, claims=(claim(),)),
        writes=["status"],
        phase="Pending",
        ready=("False", "NodeLost"),
        says=GONE,
        status={"restarts": 1, "podUID": None},
        tells=["NodeLost"],
    ),
    "a node that does not end a pod is given its time": Row(
        situation(
            sandbox(VOLUME, LOST_BEFORE),
            leaving(up(since=-90), since=-20),
            claims=(claim(),),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
        again_in=10,
    ),
    "and then said to be lost, with what can be done": Row(
        situation(
            sandbox(VOLUME, LOST_BEFORE),
            leaving(up(since=-90), since=-30),
            claims=(claim(),),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "NodeLost"),
        says="kubectl taint node node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        tells=["NodeLost"],
    ),
    "somebody else's finalizer is not the node's silence": Row(
        situation(
            sandbox(VOLUME, LOST_BEFORE),
            leaving(ended(137), since=-30),
            claims=(claim(),),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "PodDeleted"),
    ),
    "nor beside the pod of an earlier sandbox of this name": Row(
        situation(sandbox(VOLUME), EARLIER, claims=(claim(),)),
        writes=["status"],
        phase="Pending",
        ready=("False", "NodeLost"),
        says=GONE,
        tells=["NodeLost"],
    ),
    "one that is paused waits for nothing": Row(
        situation(sandbox({**VOLUME, "paused": True}, running()), SILENT, claims=(claim(),)),
        writes=["status"],
        phase="Asleep",
        ready=("False", "Paused"),
        tells=["Paused"],
    ),
}

TABLE = {**REFUSED, **LOST, **WITH_A_VOLUME}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])
