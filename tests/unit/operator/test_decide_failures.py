"""What keeps a sandbox from starting, and what is done about it."""

import pytest
from sandpod_operator.objects import Json
from sandpod_operator.observations import Errand

from tests.support.operator_objects import (
    POD_UID,
    at,
    claim,
    ended,
    pod,
    refused_bind,
    sandbox,
    situation,
    starting,
    status_of,
    up,
    waiting,
    wanted_awake,
)
from tests.support.operator_table import Row, check


def fits_nowhere(why: str) -> Json:
    """The status of a pod that the scheduler finds no node for."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    return {"phase": "Pending", "conditions": [said]}


CANNOT_START = {
    "no node fits": Row(
        situation(
            sandbox(status=starting()),
            pod(status=fits_nowhere("0/1 nodes are available: 1 Insufficient cpu.")),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "Unschedulable"),
        says="1 Insufficient cpu. Lower spec.resources",
        tells=["Unschedulable"],
    ),
    "no node fits though its volume is being made": Row(
        situation(
            sandbox({"workspace": {"size": "1Gi"}}, status=starting()),
            pod(
                {"workspace": {"size": "1Gi"}},
                status=fits_nowhere("0/1 nodes are available: 1 Insufficient cpu."),
            ),
            claims=(claim(creationTimestamp=at(-2)),),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "Unschedulable"),
        tells=["Unschedulable"],
    ),
    "that its volume is being made is no news": Row(
        situation(
            sandbox({"workspace": {"size": "1Gi"}}, status=starting()),
            pod(
                {"workspace": {"size": "1Gi"}},
                status=fits_nowhere(
                    "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
                ),
            ),
            claims=(claim(phase="Pending", creationTimestamp=at(-2)),),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        again_in=28,
    ),
    "the node that has its volume takes no pod": Row(
        situation(
            sandbox({"workspace": {"size": "1Gi"}}, status=starting()),
            pod(
                {"workspace": {"size": "1Gi"}},
                status=fits_nowhere("0/2 nodes are available: 1 node(s) had volume node affinity conflict."),
            ),
            claims=(claim(annotations={"volume.kubernetes.io/selected-node": "node-7"}),),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "VolumeElsewhere"),
        says="made for the node node-7: 0/2 nodes are available",
        tells=["VolumeElsewhere"],
    ),
    "the claim that its workspace names is not there": Row(
        situation(
            sandbox({"workspace": {"claimName": "data"}}, status=starting()),
            pod(
                {"workspace": {"claimName": "data"}},
                status=fits_nowhere('0/1 nodes are available: persistentvolumeclaim "data" not found.'),
            ),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "ClaimNotFound"),
        says="no PersistentVolumeClaim data in this namespace. Create it, or correct spec.workspace",
        tells=["ClaimNotFound"],
    ),
    "the claim that its workspace names has no volume": Row(
        situation(
            sandbox({"workspace": {"claimName": "data"}}, status=starting()),
            pod(
                {"workspace": {"claimName": "data"}},
                status=fits_nowhere(
                    "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
                ),
            ),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "ClaimPending"),
        says="kubectl describe pvc data",
        tells=["ClaimPending"],
    ),
    "a claim of its podTemplate is not there": Row(
        situation(
            sandbox({"workspace": {"claimName": "data"}}, status=starting()),
            pod(
                {"workspace": {"claimName": "data"}},
                status=fits_nowhere('0/1 nodes are available: persistentvolumeclaim "other" not found.'),
            ),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "Unschedulable"),
        says='persistentvolumeclaim "other" not found',
        tells=["Unschedulable"],
    ),
    "the image is not there": Row(
        situation(
            sandbox(status=starting()),
            pod(status=waiting("ErrImagePull", 'failed to pull image "x/y:1": not found', image="x/y:1")),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "ImageMissing"),
        says="x/y:1: not found. Correct spec.image",
        tells=["ImageMissing"],
    ),
    "a Secret is not there": Row(
        situation(
            sandbox(status=starting()),
            pod(status=waiting("CreateContainerConfigError", 'secret "db" not found')),
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "ConfigMissing"),
        says='secret "db" not found. Create the Secret or ConfigMap',
        tells=["ConfigMissing"],
    ),
    "the node cannot make the container": Row(
        situation(sandbox(status=starting()), pod(status=waiting("CreateContainerError", "no space left"))),
        writes=["status"],
        phase="Pending",
        ready=("False", "ContainerNotCreated"),
        tells=["ContainerNotCreated"],
    ),
    "an obstacle that is gone is a start again": Row(
        situation(
            sandbox(status=status_of("Pending", "ImageMissing", podUID=POD_UID, podName="box")),
            pod(status=up()),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        asks=Errand.BIND,
        again_in=57,
    ),
    "the runtime crashes before it answers": Row(
        situation(
            sandbox(status=starting()),
            pod(status=ended(1, message="Traceback:\nImportError: libc.so.6\n")),
        ),
        writes=["status", "force-delete pod"],
        phase="Pending",
        ready=("False", "CrashedAtStart"),
        says="exited with code 1; it said: Traceback: | ImportError: libc.so.6",
        status={"startFailures": 1, "nextStartAt": at(1), "podUID": None, "podName": None},
        tells=["CrashedAtStart"],
    ),
    "a container whose program is not there": Row(
        situation(
            sandbox(status=starting()),
            pod(status=ended(128, reason="StartError", message="exec: no such file or directory")),
        ),
        writes=["status", "force-delete pod"],
        phase="Pending",
        ready=("False", "StartFailed"),
        says="no such file or directory",
        status={"startFailures": 1},
        tells=["StartFailed"],
    ),
    "each failure waits twice as long": Row(
        situation(sandbox(status=starting(startFailures=3)), pod(status=ended(1))),
        writes=["status", "force-delete pod"],
        phase="Pending",
        ready=("False", "CrashedAtStart"),
        status={"startFailures": 4, "nextStartAt": at(8)},
        tells=["CrashedAtStart"],
    ),
    "the fifth failure in a row is Failed": Row(
        situation(sandbox(status=starting(startFailures=4)), pod(status=ended(1))),
        writes=["status", "force-delete pod"],
        phase="Failed",
        ready=("False", "CrashedAtStart"),
        status={"startFailures": 5, "nextStartAt": at(16)},
        tells=["CrashedAtStart"],
    ),
    "and is tried again, at least every five minutes": Row(
        situation(sandbox(status=starting(startFailures=99)), pod(status=ended(1))),
        writes=["status", "force-delete pod"],
        phase="Failed",
        ready=("False", "CrashedAtStart"),
        status={"startFailures": 100, "nextStartAt": at(300)},
        tells=["CrashedAtStart"],
    ),
    "a failure that is in the status is not counted twice": Row(
        situation(
            sandbox(status=status_of("Pending", "CrashedAtStart", startFailures=1, nextStartAt=at(1))),
            pod(status=ended(1)),
        ),
        writes=["force-delete pod"],
    ),
    "the next start waits for its time": Row(
        situation(sandbox(status=status_of("Pending", "CrashedAtStart", startFailures=3, nextStartAt=at(4)))),
        again_in=4,
    ),
    "a new wake request shortens a long pause": Row(
        situation(
            sandbox(
                status=status_of("Failed", "CrashedAtStart", startFailures=9, nextStartAt=at(200)),
                **wanted_awake(),
            )
        ),
        writes=["create pod"],
    ),
    "but not to nothing": Row(
        situation(
            sandbox(
                status=status_of("Failed", "CrashedAtStart", startFailures=9, nextStartAt=at(254)),
                **wanted_awake(),
            )
        ),
        again_in=8,
    ),
    "and each request only once": Row(
        situation(
            sandbox(
                status=status_of(
                    *("Failed", "CrashedAtStart"),
                    startFailures=9,
                    nextStartAt=at(200),
                    wakeObserved="first",
                ),
                **wanted_awake("first"),
            )
        ),
        again_in=200,
    ),
    "and comes then": Row(
        situation(sandbox(status=status_of("Pending", "CrashedAtStart", startFailures=3, nextStartAt=at(0)))),
        writes=["create pod"],
    ),
    "a changed spec is tried at once": Row(
        situation(
            sandbox(
                status=status_of("Failed", "CrashedAtStart", startFailures=7, nextStartAt=at(200)),
                generation=2,
            )
        ),
        writes=["create pod"],
    ),
    "the runtime never answers": Row(
        situation(sandbox(status=starting()), pod(status=up(since=-60)), asked=-59),
        writes=["status", "delete pod"],
        phase="Pending",
        ready=("False", "RuntimeNotAnswering"),
        says="within 60 seconds of the container's start",
        status={"startFailures": 1, "nextStartAt": at(1)},
        tells=["RuntimeNotAnswering"],
    ),
    "the runtime is not ours to bind": Row(
        situation(sandbox(status=starting()), pod(status=up()), answer=refused_bind()),
        writes=["status", "delete pod"],
        phase="Pending",
        ready=("False", "BindRefused"),
        says="another key of the installation",
        status={"startFailures": 1},
        tells=["BindRefused"],
    ),
    "a pod that vanishes while it starts is a failed start": Row(
        situation(sandbox(status=starting())),
        writes=["status"],
        phase="Pending",
        ready=("False", "PodDeleted"),
        status={"startFailures": 1, "nextStartAt": at(1)},
        tells=["PodDeleted"],
        again_in=0,
    ),
    "a spec changed before anybody worked in the pod replaces it": Row(
        situation(
            sandbox({"image": "other:2"}, status=starting(), generation=2),
            pod({"image": "other:1"}, status=waiting("ErrImagePull")),
        ),
        writes=["status", "delete pod"],
        phase="Starting",
        ready=("False", "Replaced"),
        status={"podUID": None, "startFailures": None, "nextStartAt": None},
        tells=["Replaced"],
    ),
}

TABLE = {**CANNOT_START}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])
