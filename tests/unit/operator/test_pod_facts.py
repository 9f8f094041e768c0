"""What the kubelet and the scheduler say about a pod, in our words."""

from typing import Any

import pytest
from sandpod_operator.objects import Json
from sandpod_operator.pod_ends import LAST_CHARACTERS
from sandpod_operator.pods import PodFacts, facts
from sandpod_operator.reasons import Reason

from tests.support.operator_objects import at, ended, ended_asleep, pod, up, waiting


def of(status: Json, **metadata: Any) -> PodFacts:
    return facts(pod(None, status, **metadata))


def test_both_ways_in_which_the_kubelet_tells_a_failed_pull_are_one_message() -> None:
    detail = 'failed to resolve reference "x/y:1": not found'
    first = of(waiting("ErrImagePull", f'failed to pull and unpack image "x/y:1": {detail}', image="x/y:1"))
    then = of(
        waiting(
            "ImagePullBackOff",
            'Back-off pulling image "x/y:1": ErrImagePull: '
            f'failed to pull and unpack image "x/y:1": {detail}',
            image="x/y:1",
        )
    )

    assert first.obstacle == then.obstacle
    assert first.obstacle is not None
    assert first.obstacle.message == f"x/y:1: {detail}"


def test_a_bad_name_is_an_image_that_is_missing() -> None:
    found = of(waiting("InvalidImageName", 'couldn\'t parse image "A B"', image="A B")).obstacle

    assert found is not None
    assert found.reason is Reason.IMAGE_MISSING


def test_the_runtime_s_own_image_may_be_the_one_that_is_missing() -> None:
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    status = {
        **waiting("PodInitializing"),
        "initContainerStatuses": [{"name": "sandpod-runtime", "image": "sandpod/runtime:1", "state": state}],
    }
    found = of(status).obstacle

    assert found is not None
    assert found.message == "sandpod/runtime:1: not found"


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_a_container_on_its_way_is_no_obstacle(reason: str) -> None:
    assert of(waiting(reason)).obstacle is None


def test_a_pod_that_runs_has_no_obstacle_and_no_end() -> None:
    found = of(up())

    assert (found.obstacle, found.end) == (None, None)
    assert found.running_since is not None
    assert found.ip == "10.1.0.7"


def test_scheduling_gates_are_not_a_lack_of_room() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
    found = of({"phase": "Pending", "conditions": [condition]}).obstacle

    assert found is not None
    assert found.reason is Reason.SCHEDULING_GATED


def test_the_last_words_of_a_container_are_kept_and_bounded() -> None:
    lines = "\n".join(f"line {number} {'x' * 200}" for number in range(100))
    found = of(ended(3, message=lines)).end

    assert found is not None
    assert "exited with code 3" in found.message
    assert "line 99" in found.message
    assert len(found.message) < LAST_CHARACTERS + 100


def test_an_init_container_that_fails_is_named() -> None:
    state = {"terminated": {"exitCode": 2, "reason": "Error", "message": "cannot copy"}}
    waits = waiting("PodInitializing")
    status = {**waits, "phase": "Failed", "initContainerStatuses": [{"name": "fetch", "state": state}]}
    found = of(status).end

    assert found is not None
    assert found.reason is Reason.START_FAILED
    assert "init container fetch exited with code 2; it said: cannot copy" in found.message


@pytest.mark.parametrize("code", [0, 137])
def test_that_a_pod_was_evicted_is_told_after_the_end_of_its_containers(code: int) -> None:
    early = {**ended(code), "phase": "Running"}
    late = {**early, "phase": "Failed", "reason": "Evicted", "message": "its disk was full"}
    found = of(late).end

    assert of(early).end is None
    assert found is not None
    assert (found.reason, found.message) == (Reason.EVICTED, "its disk was full")


def test_neither_a_sleep_nor_a_deletion_waits_for_more_to_be_told() -> None:
    assert of({**ended_asleep(), "phase": "Running"}).end is not None
    assert of({**ended(137), "phase": "Running"}, deletionTimestamp=at(0)).end is not None


def test_a_pod_that_its_node_refused_has_failed() -> None:
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
    found = of(status).end

    assert found is not None
    assert found.reason is Reason.POD_FAILED
    assert found.message == "OutOfcpu: Node didn't have enough resource: cpu"


def test_a_pod_that_was_lost_with_its_node_has_failed_for_that() -> None:
    gone = {"type": "DisruptionTarget", "status": "True", "message": "PodGC: node no longer exists"}
    found = of({"phase": "Failed", "conditions": [gone]}).end

    assert found is not None
    assert (found.reason, found.message) == (Reason.POD_FAILED, "PodGC: node no longer exists")


def test_a_sidecar_that_is_not_ready_is_no_silent_node() -> None:
    status = up(ready="False", reason="ContainersNotReady")
    status["conditions"][1]["status"] = "False"

    assert of(status).node_responds


def test_a_readiness_gate_is_no_silent_node() -> None:
    assert of(up(ready="False", reason="ReadinessGatesNotReady")).node_responds
    assert not of(up(ready="False")).node_responds


def test_a_drain_is_told_as_what_it_is() -> None:
    status = up()
    status["conditions"].append(
        {"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}
    )

    assert of(status, deletionTimestamp=at(30)).deleted_by == "Eviction API: evicting"


def test_only_a_sandbox_of_the_pod_s_name_is_an_earlier_sandbox() -> None:
    owner = {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "Sandbox",
        "name": "box",
        "uid": "u",
        "controller": True,
    }

    assert of({}, ownerReferences=[owner]).of_sandbox
    assert not of({}, ownerReferences=[{**owner, "name": "other"}]).of_sandbox
    assert not of({}, ownerReferences=[{**owner, "apiVersion": "evil.dev/v1"}]).of_sandbox
    assert not of({}, ownerReferences=[{**owner, "controller": False}]).of_sandbox
    assert not of({}, ownerReferences=[]).of_sandbox


def test_a_note_of_a_template_that_nobody_could_have_written_is_none() -> None:
    assert of({}, annotations={"sandpod.dev/template": "[" * 100_000}).template is None
