"""Pods that are taken away while they are in use: by the kernel, by the kubelet, by whoever clears a node.
The sandbox comes back and says what happened.
"""

import json

import pytest
from sandpod_crds.names import CHILD_LABELS

from tests.support.aftermath import nothing_doubled_nothing_left
from tests.support.cluster import Json, kubectl
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually

SLOW = 120


def comes_back(box: Sandbox, *, without: str) -> Json:
    """Its status, once it is Ready with another pod than this."""

    def another_one() -> Json:
        status = box.status()
        assert status.get("podUID") not in (None, without), status
        assert status["phase"] == "Running", status
        return status

    return eventually(another_one, timeout=SLOW)


def evict(box: Sandbox) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": box.name, "namespace": box.namespace},
    }
    path = f"/api/v1/namespaces/{box.namespace}/pods/{box.name}/eviction"
    kubectl("create", "--raw", path, "-f", "-", input=json.dumps(body))


def test_a_sandbox_whose_memory_is_full_is_killed_and_says_so_and_starts_again(sandbox: Sandboxes) -> None:
    box = sandbox(resources={"limits": {"memory": "80Mi"}}).wait()
    pod: str = box.status()["podUID"]

    def kill_it() -> bool:
        # Files in memory, which no process has to be killed for, so that in the end it is the runtime.
        box.exec("sh", "-c", "head -c 60000000 /dev/zero > /dev/shm/$$", check=False)
        return any(event["reason"] == "OOMKilled" for event in box.events())

    eventually(kill_it, timeout=SLOW)
    assert "memory" in box.told("OOMKilled")
    assert comes_back(box, without=pod)["restarts"] >= 1
    assert box.output("echo back") == "back"
    nothing_doubled_nothing_left(sandbox)


def test_one_that_fills_its_nodes_disk_is_evicted_and_says_so_and_starts_again(sandbox: Sandboxes) -> None:
    small = {"limits": {"ephemeral-storage": "64Mi"}, "requests": {"ephemeral-storage": "16Mi"}}
    box = sandbox(resources=small, keepAlive=True).wait()
    pod: str = box.status()["podUID"]
    box.exec("sh", "-c", "head -c 150000000 /dev/zero > /tmp/big", check=False)

    assert "ephemeral" in box.told("Evicted", timeout=SLOW)
    assert comes_back(box, without=pod)["restarts"] == 1
    assert box.output("ls /tmp/big 2>/dev/null || echo empty") == "empty"
    nothing_doubled_nothing_left(sandbox)


def test_a_service_that_is_evicted_starts_again_and_says_who_took_its_pod(sandbox: Sandboxes) -> None:
    box = sandbox(keepAlive=True).wait()
    pod: str = box.status()["podUID"]
    evict(box)

    assert "evict" in box.told("PodDeleted", timeout=SLOW).lower()
    comes_back(box, without=pod)
    nothing_doubled_nothing_left(sandbox)


def test_nobody_who_works_is_evicted(sandbox: Sandboxes) -> None:
    box = sandbox().wait()
    pod: str = box.status()["podUID"]
    # The first sandbox of a namespace runs for a moment before drains wait for it.
    eventually(box.holds_up_drains, timeout=SLOW)
    with pytest.raises(AssertionError, match="disruption budget"):
        evict(box)

    assert box.output("echo still") == "still"
    assert box.status()["podUID"] == pod


@pytest.mark.parametrize(
    "taken_off",
    [*({"labels": {label: None}} for label in CHILD_LABELS), {"ownerReferences": None}],
    ids=[*CHILD_LABELS, "owner"],
)
def test_a_pod_that_somebody_takes_a_label_or_its_owner_off_stays_the_sandboxs(
    sandbox: Sandboxes, taken_off: Json
) -> None:
    box = sandbox().wait()
    before = box.pod()["metadata"]
    patch = json.dumps({"metadata": taken_off})
    kubectl("patch", "pod", "box", "-n", box.namespace, "--type=merge", f"--patch={patch}")

    def as_before() -> bool:
        now = box.pod()["metadata"]
        return all(now.get(field) == before[field] for field in ("labels", "ownerReferences"))

    eventually(as_before, timeout=SLOW)
    assert box.status()["podUID"] == before["uid"]
    assert box.wait().output("echo here") == "here"
