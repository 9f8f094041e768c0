"""What goes wrong with a start, provoked for real: each has a reason and a message that says what to do, and
a sandbox that can recover does so by itself.

The sandboxes of the slow failures are applied before the first test, so that their waits run side by side.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.cluster import Json, apply, get, kubectl
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually


@dataclass(frozen=True)
class Trouble:
    """Sandboxes in trouble."""

    silent: Sandbox
    crashing: Sandbox
    on_a_lost_node: Sandbox
    lost_pod: str


@pytest.fixture(scope="module", autouse=True)
def trouble(shared_sandbox: Sandboxes) -> Iterator[Trouble]:
    """Those that take their time."""
    node = "e2e-lost-node"
    make_node(node)
    lost = shared_sandbox(
        "lost", nodeSelector={"kubernetes.io/hostname": node}, tolerations=[{"operator": "Exists"}]
    )
    silent = shared_sandbox("silent", **instead_of_the_runtime("silent", "exec sleep 3600", lost.namespace))
    script = "echo I am no teapot >&2; exit 3"
    crashing = shared_sandbox("crashing", **instead_of_the_runtime("crashing", script, lost.namespace))
    eventually(lambda: lost.pod()["spec"].get("nodeName") == node)
    pod: str = lost.pod()["metadata"]["uid"]
    kubectl("delete", "node", node)
    yield Trouble(silent=silent, crashing=crashing, on_a_lost_node=lost, lost_pod=pod)
    kubectl("delete", "node", node, "--ignore-not-found")


def instead_of_the_runtime(name: str, script: str, namespace: str) -> Json:
    """The spec of a sandbox whose owner has mounted something over the runtime: this script."""
    data = {"sandpod-runtime": f"#!/bin/sh\n{script}\n"}
    apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": data,
        }
    )
    mount = {"name": "script", "mountPath": "/opt/sandpod/bin"}
    spec = {
        "containers": [{"name": "sandbox", "volumeMounts": [mount]}],
        "volumes": [{"name": "script", "configMap": {"name": name, "defaultMode": 0o755}}],
    }
    return {"podTemplate": {"spec": spec}}


def make_node(name: str) -> None:
    """A node that the scheduler takes for a good one, though no kubelet serves it. Only who tolerates
    everything goes there: the others' pods would be lost with it.
    """
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    taint = {"key": "sandpod.dev/e2e-lost", "effect": "NoSchedule"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    apply({**node, "spec": {"taints": [taint]}})
    room = {"cpu": "4", "memory": "8Gi", "pods": "20", "ephemeral-storage": "100Gi"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    patch = json.dumps({"status": status})
    kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", patch)


def test_a_sandbox_that_fits_on_no_node_says_so_and_starts_when_one_fits(sandbox: Sandboxes) -> None:
    label = f"sandpod.dev/{sandbox.namespace}"
    box = sandbox(nodeSelector={label: "yes"})
    said = box.fails_with("Unschedulable")["message"]
    assert "node" in said
    node: str = get("nodes", "-l", "node-role.kubernetes.io/control-plane")["items"][0]["metadata"]["name"]
    kubectl("label", "node", node, f"{label}=yes")
    try:
        box.wait()
    finally:
        kubectl("label", "node", node, f"{label}-")


def test_a_missing_image_is_named_and_another_one_mends_it(sandbox: Sandboxes) -> None:
    box = sandbox(image="127.0.0.1:1/no/such:image")
    assert "127.0.0.1:1/no/such:image" in box.fails_with("ImageMissing")["message"]
    box.apply().wait()
    assert box.output("echo works") == "works"


def test_a_missing_key_of_a_secret_is_named_and_mended_by_adding_it(sandbox: Sandboxes) -> None:
    reference = {"secretKeyRef": {"name": "later", "key": "token"}}
    box = sandbox(env=[{"name": "TOKEN", "valueFrom": reference}])
    assert "later" in box.fails_with("ConfigMissing")["message"]
    kubectl("create", "secret", "generic", "later", "-n", sandbox.namespace, "--from-literal=token=t0k3n")
    box.wait(timeout=90)
    assert box.output('echo "$TOKEN"') == "t0k3n"


def test_too_little_memory_is_told_as_that(sandbox: Sandboxes) -> None:
    box = sandbox(resources={"limits": {"memory": "16Mi"}})
    assert "memory" in box.fails_with("OOMKilled")["message"]


def test_a_bad_pod_template_is_explained_by_the_api_servers_own_words(sandbox: Sandboxes) -> None:
    box = sandbox(podTemplate={"spec": {"containers": [{"name": "sandbox", "imagePullPolicy": "Sometimes"}]}})
    assert "Sometimes" in box.fails_with("InvalidPodTemplate")["message"]
    assert box.events()
    box.apply().wait()


def test_a_field_that_no_pod_has_is_told_and_not_dropped(sandbox: Sandboxes) -> None:
    box = sandbox(podTemplate={"spec": {"nodeselector": {"disk": "ssd"}}})
    assert 'unknown field "spec.nodeselector"' in box.fails_with("InvalidPodTemplate")["message"]
    box.apply().wait()


def test_a_quota_that_is_full_is_told_and_the_start_tried_again_when_it_frees_up(sandbox: Sandboxes) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "one", "namespace": sandbox.namespace},
        "spec": {"hard": {"pods": "1"}},
    }
    apply(quota)
    first = sandbox("first").wait()
    second = sandbox("second")
    assert "one" in second.fails_with("QuotaExceeded")["message"]
    first.delete()
    second.wait(timeout=90)


def test_a_pod_deleted_by_hand_comes_back(sandbox: Sandboxes) -> None:
    box = sandbox().wait()
    before: str = box.pod()["metadata"]["uid"]
    kubectl("delete", "pod", box.name, "-n", box.namespace, "--timeout=60s")

    def another_one_answers() -> bool:
        return box.status().get("podUID") not in (None, before) and box.condition()["status"] == "True"

    eventually(another_one_answers, timeout=60)
    assert box.output("echo back") == "back"


def test_user_code_that_ends_the_runtime_gets_a_new_pod(sandbox: Sandboxes) -> None:
    box = sandbox().wait()
    before: str = box.pod()["metadata"]["uid"]
    box.exec("sh", "-c", "kill 1; sleep 60", check=False)
    eventually(lambda: box.status().get("podUID") not in (None, before), timeout=60)
    box.wait()


def test_a_pod_of_somebody_else_with_the_same_name_is_left_alone(
    sandbox: Sandboxes, images: dict[str, str]
) -> None:
    foreign: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "taken", "namespace": sandbox.namespace},
        "spec": {
            "containers": [{"name": "it", "image": images["busybox"], "command": ["/bin/sleep", "600"]}],
            "terminationGracePeriodSeconds": 0,
        },
    }
    apply(foreign)
    box = sandbox("taken")
    assert "taken" in box.fails_with("NameTaken")["message"]
    assert "ownerReferences" not in box.pod()["metadata"]
    kubectl("delete", "pod", "taken", "-n", sandbox.namespace, "--timeout=30s")
    box.wait()


def test_a_runtime_that_crashes_is_told_with_its_last_words(trouble: Trouble) -> None:
    assert "I am no teapot" in trouble.crashing.told("CrashedAtStart")


def test_starts_that_fail_are_tried_again_and_told_of_without_flooding(trouble: Trouble) -> None:
    eventually(lambda: trouble.crashing.status().get("startFailures", 0) >= 3, timeout=60)
    assert trouble.crashing.status()["phase"] in {"Pending", "Starting", "Failed"}
    told = [event for event in trouble.crashing.events() if event["type"] == "Warning"]
    assert told
    assert len(told) <= 2


def test_a_runtime_that_never_answers_is_given_up(trouble: Trouble) -> None:
    assert "answer" in trouble.silent.told("RuntimeNotAnswering", timeout=100)


def test_a_sandbox_whose_node_is_gone_starts_elsewhere(trouble: Trouble) -> None:
    box = trouble.on_a_lost_node
    eventually(lambda: box.status().get("podUID") not in (None, trouble.lost_pod), timeout=120, every=0.5)
    assert "node" in box.told("PodFailed")
    # The new pod is for the same node, which will not come back: now a person has to say so.
    box.fails_with("Unschedulable")
    box.apply().wait()
