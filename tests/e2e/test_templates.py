"""Templates and pools: what sandboxes have in common, and pods that wait for them."""

import json
from collections.abc import Iterator

import pytest

from tests.support.cluster import Json, apply, get, kubectl
from tests.support.sandboxes import Sandboxes
from tests.support.waiting import eventually
from tests.support.writes import operator_writes

SMALL: Json = {"requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "16Mi"}}


def template(namespace: str, name: str = "python", **spec: object) -> None:
    apply(_ours("SandboxTemplate", name, namespace, {"resources": SMALL, **spec}))


def pool(namespace: str, name: str = "warm", **spec: object) -> None:
    apply(_ours("SandboxPool", name, namespace, {"templateRef": {"name": "python"}, **spec}))


def _ours(kind: str, name: str, namespace: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "sandpod.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def filled(namespace: str, count: int, name: str = "warm") -> Json:
    """The pool's status, once so many of its pods are ready."""

    def ready() -> Json:
        status: Json = get("sandboxpool", name, "-n", namespace).get("status", {})
        assert status.get("readyReplicas") == count, status
        return status

    return eventually(ready, timeout=120, every=0.2)


@pytest.fixture
def priority_class(namespace: str) -> Iterator[str]:
    """The name of one whose pods come before nobody else's."""
    apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": namespace},
            "value": 7,
            "preemptionPolicy": "Never",
        }
    )
    yield namespace
    kubectl("delete", "priorityclass", namespace)


def test_a_sandbox_takes_from_its_template_what_it_does_not_say(
    sandbox: Sandboxes, priority_class: str
) -> None:
    env = [{"name": "A", "value": "template"}, {"name": "B", "value": "template"}]
    template(sandbox.namespace, env=env, sleepAfter="1h", priorityClassName=priority_class)
    box = sandbox(templateRef={"name": "python"}, env=[{"name": "A", "value": "own"}]).wait()

    assert box.output("echo $A $B") == "own template"
    assert box.status()["sleepAfter"] == "1h"
    pod = box.pod()["spec"]
    assert (pod["priorityClassName"], pod["priority"]) == (priority_class, 7)


def test_a_changed_template_works_from_the_next_start_on_and_status_says_so(sandbox: Sandboxes) -> None:
    template(sandbox.namespace, env=[{"name": "A", "value": "1"}], sleepAfter="1h")
    box = sandbox(templateRef={"name": "python"}).wait()
    template(sandbox.namespace, env=[{"name": "A", "value": "2"}], sleepAfter="2h")
    eventually(lambda: box.condition("SpecHonored").get("reason") == "RestartPending")
    assert box.output("echo $A") == "1"
    assert box.status()["sleepAfter"] == "1h"

    kubectl("delete", "pod", box.name, "-n", box.namespace, "--timeout=60s")
    eventually(lambda: box.status().get("sleepAfter") == "2h", timeout=60)

    assert box.wait().output("echo $A") == "2"


def test_a_missing_template_is_named_and_used_when_it_comes(sandbox: Sandboxes) -> None:
    box = sandbox(templateRef={"name": "python"})
    assert "SandboxTemplate python" in box.fails_with("TemplateMissing")["message"]
    template(sandbox.namespace)

    box.wait()


def test_a_sandbox_takes_a_warm_pod_with_its_own_environment(sandbox: Sandboxes) -> None:
    template(sandbox.namespace)
    pool(sandbox.namespace, replicas=2)
    filled(sandbox.namespace, 2)
    waiting = set(kubectl("get", "pods", "-n", sandbox.namespace, "-o", "name").stdout.split())

    box = sandbox(poolRef={"name": "warm"}, env=[{"name": "TASK", "value": "17"}]).wait()

    assert box.status()["pool"] == "warm"
    assert f"pod/{box.status()['podName']}" in waiting
    assert box.output("echo $TASK") == "17"
    assert box.pod()["metadata"]["ownerReferences"][0]["kind"] == "Sandbox"
    # The pool has another one instead, once its status is not the one from before the claim.
    eventually(lambda: filled(sandbox.namespace, 2)["claimed"] == 1)


@pytest.mark.parametrize("spec", [{}, {"workspace": {"size": "1Gi"}}])
def test_a_warm_claim_costs_two_writes_until_it_is_ready(sandbox: Sandboxes, spec: Json) -> None:
    template(sandbox.namespace, **spec)
    pool(sandbox.namespace, replicas=1)
    filled(sandbox.namespace, 1)
    before = len(operator_writes(sandbox.namespace))
    box = sandbox(poolRef={"name": "warm"}).wait()
    pod = box.status()["podName"]
    # What comes after the claim has been done: the pool has another pod.
    eventually(lambda: filled(sandbox.namespace, 1)["claimed"] == 1)

    volume = box.status().get("workspaceClaim")
    written = [
        each
        for each in operator_writes(sandbox.namespace)[before:]
        if each.split()[-1] in (box.name, pod, volume)
    ]
    # And then the volume becomes the sandbox's.
    assert written == [
        f"patch pods {pod}",
        f"patch sandboxes/status {box.name}",
        *([f"patch persistentvolumeclaims {volume}"] if volume else []),
    ]


def test_an_empty_pool_means_a_cold_start_and_that_is_told(sandbox: Sandboxes) -> None:
    template(sandbox.namespace)
    pool(sandbox.namespace, replicas=0)
    box = sandbox(poolRef={"name": "warm"}).wait()

    assert "pool" not in box.status()
    assert "warm" in box.told("PoolEmpty")


def test_a_pool_is_scaled_and_replaced_when_its_template_changes(sandbox: Sandboxes) -> None:
    template(sandbox.namespace)
    pool(sandbox.namespace, replicas=1)
    filled(sandbox.namespace, 1)
    kubectl("scale", "sandboxpool", "warm", "-n", sandbox.namespace, "--replicas=3")
    before = filled(sandbox.namespace, 3)["templateHash"]
    template(sandbox.namespace, user=1234)

    def replaced() -> bool:
        status = get("sandboxpool", "warm", "-n", sandbox.namespace)["status"]
        return status["templateHash"] != before and status.get("updatedReplicas") == 3

    eventually(replaced, timeout=120, every=0.5)
    filled(sandbox.namespace, 3)
    assert sandbox(poolRef={"name": "warm"}).wait().output("id -u") == "1234"


def test_two_sandboxes_never_get_one_pod(sandbox: Sandboxes) -> None:
    template(sandbox.namespace)
    pool(sandbox.namespace, replicas=3)
    filled(sandbox.namespace, 3)
    boxes = [sandbox(f"box-{number}", poolRef={"name": "warm"}) for number in range(6)]
    pods = [box.wait(timeout=120).status()["podUID"] for box in boxes]

    assert len(set(pods)) == len(boxes)
    assert sum("pool" in box.status() for box in boxes) >= 3


def test_a_warm_pod_with_a_workspace_keeps_its_files_over_a_sleep(sandbox: Sandboxes) -> None:
    template(sandbox.namespace, workspace={"size": "1Gi"}, sleepAfter="2s")
    pool(sandbox.namespace, replicas=1)
    filled(sandbox.namespace, 1)
    box = sandbox(poolRef={"name": "warm"}).wait()
    assert box.status()["pool"] == "warm"
    box.exec("sh", "-c", "echo kept > /workspace/f")
    claim = box.status()["workspaceClaim"]
    owner = "{.metadata.ownerReferences[0].name}"
    read = ("get", "pvc", claim, "-n", box.namespace, "-o", f"jsonpath={owner}")
    eventually(lambda: kubectl(*read).stdout == box.name)
    box.falls_asleep()

    assert box.output("cat /workspace/f") == "kept"
    assert box.status()["workspaceClaim"] == claim


@pytest.mark.parametrize("field", ["replicas", "readyReplicas"])
def test_an_autoscaler_finds_what_it_needs(sandbox: Sandboxes, field: str) -> None:
    template(sandbox.namespace)
    pool(sandbox.namespace, replicas=1)
    filled(sandbox.namespace, 1)
    path = f"/apis/sandpod.dev/v1alpha1/namespaces/{sandbox.namespace}/sandboxpools/warm"
    scale = json.loads(kubectl("get", "--raw", f"{path}/scale").stdout)
    selected = kubectl(
        "get", "pods", "-n", sandbox.namespace, "-l", scale["status"]["selector"], "-o", "name"
    )

    assert scale["status"]["replicas"] == scale["spec"]["replicas"] == len(selected.stdout.split()) == 1
    assert get("sandboxpool", "warm", "-n", sandbox.namespace)["status"][field] == 1
