"""Templates and pools: what sandboxes have in common, and pods that wait for them."""

import json
from collections.abc import Iterator

import pytest

from tests.support.cluster import Json, apply, get, kill_the_operator, kubectl, upgrade
from tests.support.pools import ask_at_once, filled, lends, pool, template
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually
from tests.support.writes import operator_writes

# It refers to what `keys_and_colors` makes, and its program shows what that sees of it.
REFERRING: Json = {
    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}}],
    "envFrom": [{"configMapRef": {"name": "colors"}}],
    "processes": [
        {
            "name": "web",
            "command": "cd /tmp && echo $TOKEN $COLOR >seen && exec python3 -m http.server 8000",
            "port": 8000,
        }
    ],
}
ASK_THE_PROGRAM = "curl -sf --retry 20 --retry-connrefused --retry-delay 1 localhost:8000/seen"


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


@pytest.fixture
def keys_and_colors(namespace: str) -> None:
    """A Secret and a ConfigMap."""
    secret: Json = {"kind": "Secret", "stringData": {"token": "s3cret"}}
    config: Json = {"kind": "ConfigMap", "data": {"COLOR": "blue"}}
    for name, content in (("keys", secret), ("colors", config)):
        apply({"apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, **content})


@pytest.fixture
def operator_may_read(namespace: str) -> Iterator[None]:
    """Secrets and ConfigMaps of the test's namespace."""
    try:
        upgrade("--set", f"pools.readSecrets={{{namespace}}}")
        yield
    finally:
        upgrade()


def the_only_pod(namespace: str) -> Json:
    (pod,) = get("pods", "-n", namespace)["items"]
    return pod


def started(pod: Json) -> tuple[str, list[str]]:
    """What would be another one after any new start."""
    return pod["metadata"]["uid"], [each["containerID"] for each in pod["status"]["containerStatuses"]]


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


def test_a_warm_pod_gets_secrets_and_starts_programs_where_the_operator_may_read_secrets(
    sandbox: Sandboxes, keys_and_colors: None, operator_may_read: None
) -> None:
    template(sandbox.namespace)
    pool(sandbox.namespace, replicas=1)
    filled(sandbox.namespace, 1)
    warm = started(the_only_pod(sandbox.namespace))

    box = sandbox(poolRef={"name": "warm"}, **REFERRING).wait()

    assert box.status()["pool"] == "warm"
    assert box.output("echo $TOKEN $COLOR") == "s3cret blue"
    assert box.output(ASK_THE_PROGRAM) == "s3cret blue"
    pod = box.pod()
    assert started(pod) == warm
    # The runtime got it, and nobody wrote it down.
    assert "s3cret" not in json.dumps([pod, box.get()])


def test_where_the_operator_may_read_no_secrets_who_needs_them_starts_cold_and_is_told(
    sandbox: Sandboxes, keys_and_colors: None
) -> None:
    template(sandbox.namespace)
    pool(sandbox.namespace, replicas=1)
    filled(sandbox.namespace, 1)
    warm = the_only_pod(sandbox.namespace)

    box = sandbox(poolRef={"name": "warm"}, **REFERRING).wait()

    assert "pools.readSecrets" in box.told("SecretsWithheld")
    assert "pool" not in box.status()
    assert box.output("echo $TOKEN $COLOR") == "s3cret blue"
    assert box.output(ASK_THE_PROGRAM) == "s3cret blue"
    # It still waits for somebody.
    left = get("pod", warm["metadata"]["name"], "-n", sandbox.namespace)
    assert started(left) == started(warm)
    assert left["metadata"]["ownerReferences"][0]["kind"] == "SandboxPool"


@pytest.mark.parametrize("spec", [{}, {"workspace": {"size": "1Gi"}}])
def test_a_warm_claim_costs_two_writes(sandbox: Sandboxes, spec: Json) -> None:
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
    assert written == [f"patch pods {pod}", f"patch sandboxes/status {box.name}"]


def test_an_operator_killed_in_a_burst_of_claims_takes_up_the_pods_that_it_had_yet_to_tell(
    sandbox: Sandboxes,
) -> None:
    namespace, names = sandbox.namespace, [f"box-{number}" for number in range(12)]
    template(namespace)
    pool(namespace, replicas=len(names))
    filled(namespace, len(names))

    ask_at_once(namespace, names)
    eventually(lambda: lends(namespace), every=0.1)
    kill_the_operator()
    boxes = [Sandbox(name=name, namespace=namespace).wait() for name in names]
    for box in boxes:
        assert box.output("echo $((6 * 7))") == "42"
    served = [box.status()["podUID"] for box in boxes]

    eventually(lambda: not lends(namespace), timeout=120)
    owners = [box.pod()["metadata"]["ownerReferences"][0]["name"] for box in boxes]
    assert owners == names
    assert [box.status()["podUID"] for box in boxes] == served
    filled(namespace, len(names))
    assert len(get("pods", "-n", namespace)["items"]) == 2 * len(names)


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
    box.falls_asleep()
    owner = "{.metadata.ownerReferences[0].name}"
    read = ("get", "pvc", claim, "-n", box.namespace, "-o", f"jsonpath={owner}")
    eventually(lambda: kubectl(*read).stdout == box.name)

    assert box.output("cat /workspace/f") == "kept"
    assert box.status()["workspaceClaim"] == claim


def test_a_claimed_volume_outlives_its_pool_and_goes_with_its_sandbox(sandbox: Sandboxes) -> None:
    template(sandbox.namespace, workspace={"size": "1Gi"})
    pool(sandbox.namespace, replicas=1)
    filled(sandbox.namespace, 1)
    box = sandbox(poolRef={"name": "warm"}).wait()
    box.exec("sh", "-c", "echo kept > /workspace/f")
    claim = box.status()["workspaceClaim"]
    filled(sandbox.namespace, 1)

    def volumes() -> list[str]:
        return [each["metadata"]["name"] for each in get("pvc", "-n", sandbox.namespace)["items"]]

    assert len(volumes()) == 2
    kubectl("delete", "sandboxpool", "warm", "-n", sandbox.namespace)
    eventually(lambda: volumes() == [claim], timeout=90)
    assert box.output("cat /workspace/f") == "kept"

    kubectl("delete", "sandbox", box.name, "-n", sandbox.namespace)
    eventually(lambda: volumes() == [], timeout=90)


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
