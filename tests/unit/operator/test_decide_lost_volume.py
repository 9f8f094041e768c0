"""The claim of a sandbox's workspace is gone, and there is a pod that is to have it."""

import pytest
from sandpod_operator.objects import Json
from sandpod_operator.reasons import Reason

from tests.support.operator_objects import claim, pod, sandbox, situation, starting
from tests.support.operator_table import Row, check
from tests.support.workspace_objects import VOLUME, refusal, runs


def had_files() -> Json:
    """It starts again, and its last status spoke of its volume."""
    return starting(conditions=runs(VOLUME, claims=(claim(),))["conditions"])


def on(pod: Json) -> Json:
    pod["spec"]["nodeName"] = "node-1"
    return pod


AT_A_LOSS = {
    "deleted before the pod has a node, it is made again": Row(
        situation(sandbox(VOLUME, starting()), pod(VOLUME)),
        writes=["create persistentvolumeclaims"],
    ),
    "not while it may not be made": Row(
        situation(
            sandbox(VOLUME, starting(startFailures=0)),
            pod(VOLUME),
            refused="persistentvolumeclaims",
            refusal=refusal(Reason.QUOTA_EXCEEDED, "full"),
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        again_in=10,
    ),
    "not for a pod that has its node: its claim stays as long as it does": Row(
        situation(sandbox(VOLUME, had_files()), on(pod(VOLUME))),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        again_in=55,
    ),
    "not for a pod that has no workspace": Row(
        situation(sandbox(VOLUME, starting()), pod(), fenced=True),
        writes=["status", "delete pod"],
        phase="Starting",
        ready=("False", "Replaced"),
        tells=["Replaced"],
    ),
}


@pytest.mark.parametrize("name", AT_A_LOSS)
def test_a_volume_is_made_again(name: str) -> None:
    check(AT_A_LOSS[name])
