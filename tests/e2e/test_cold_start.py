"""From `kubectl apply` to a command's output: what a user gets, and what it costs the cluster."""

import pytest

from tests.support.cluster import SYSTEM, Json, apply, get, kubectl, sandpod
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually
from tests.support.writes import operator_writes


def test_a_sandbox_becomes_ready_and_runs_a_command(sandbox: Sandboxes) -> None:
    box = sandbox().wait()
    assert box.exec("echo", "hello").stdout == "hello\n"


def test_an_empty_manifest_is_enough(namespace: str) -> None:
    apply(
        {
            "apiVersion": "sandpod.dev/v1alpha1",
            "kind": "Sandbox",
            "metadata": {"name": "bare", "namespace": namespace},
        }
    )
    Sandbox("bare", namespace).wait()


def test_the_status_says_what_runs_where(box: Sandbox) -> None:
    found, pod = box.get(), box.pod()
    status = found["status"]
    assert status["phase"] == "Running"
    assert status["podName"] == pod["metadata"]["name"]
    assert status["podUID"] == pod["metadata"]["uid"]
    assert status["podIP"] == pod["status"]["podIP"]
    assert status["image"] == pod["spec"]["containers"][0]["image"]
    assert status["runtimeVersion"]
    assert status["startedAt"]
    assert status["observedGeneration"] == found["metadata"]["generation"]


def test_kubectl_get_shows_phase_and_readiness(box: Sandbox) -> None:
    header, row = kubectl("get", "sandboxes", "-n", box.namespace).stdout.splitlines()
    assert header.split()[:3] == ["NAME", "PHASE", "READY"]
    assert row.split()[:3] == ["box", "Running", "True"]
    assert "box" in kubectl("get", "sbx", "-n", box.namespace).stdout
    assert "sandbox.sandpod.dev/box" in kubectl("get", "all", "-n", box.namespace).stdout


def test_the_pod_carries_the_recommended_labels_and_its_owner(box: Sandbox) -> None:
    metadata = box.pod()["metadata"]
    labels, uid = metadata["labels"], box.get()["metadata"]["uid"]
    assert labels["app.kubernetes.io/name"] == "sandpod"
    assert labels["app.kubernetes.io/component"] == "sandbox"
    assert labels["app.kubernetes.io/managed-by"] == "sandpod"
    assert labels["app.kubernetes.io/instance"] == "box"
    assert labels["sandpod.dev/sandbox-uid"] == uid
    owner = metadata["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Sandbox", uid, True)


def test_a_sandbox_without_a_workspace_has_no_volume(box: Sandbox) -> None:
    assert box.pod()["spec"].get("volumes", []) == []


def test_a_first_start_that_goes_well_has_no_events(box: Sandbox) -> None:
    assert box.events() == []


def test_a_cold_start_costs_at_most_four_writes_and_six_with_a_workspace_and_a_port(
    sandbox: Sandboxes, namespace: str
) -> None:
    sandbox("first").wait().exec("true")
    second = sandbox("second", workspace={"size": "1Gi"}, ports=[{"port": 8000}]).wait()
    second.exec("true")
    # One for the namespace, whatever comes into it.
    written = [w for w in operator_writes(namespace) if w != "create poddisruptionbudgets sandpod-sandboxes"]
    mine = {name: [w for w in written if name in w.split()[-1]] for name in ("first", "second")}
    # The gateway's namespace has the Ingresses of all.
    mine["second"] += [w for w in operator_writes(SYSTEM) if w.endswith(second.get()["metadata"]["uid"])]
    assert {len([w for w in each if w.startswith("create pods")]) for each in mine.values()} == {1}
    assert len(mine["first"]) <= 4, written
    assert len(mine["second"]) <= 6, written
    assert [w for w in mine["second"] if w.startswith("create ingresses")], written


def test_the_command_line_makes_shows_and_deletes_a_sandbox(namespace: str) -> None:
    here = ("-n", namespace)
    sandpod("create", "mine", *here)
    Sandbox("mine", namespace).wait()
    assert "mine" in sandpod("get", *here).stdout
    assert sandpod("exec", *here, "mine", "--", "echo", "hi").stdout == "hi\n"
    sandpod("delete", "mine", *here)
    kubectl("wait", "sandbox/mine", *here, "--for=delete", "--timeout=30s")


def test_kubectl_finds_the_same_program_as_its_plugin(box: Sandbox) -> None:
    done = kubectl("sandbox", "exec", "-n", box.namespace, box.name, "--", "echo", "by kubectl")
    assert done.stdout == "by kubectl\n"


def test_deleting_a_sandbox_leaves_nothing_behind(sandbox: Sandboxes, namespace: str) -> None:
    box = sandbox().wait()
    box.delete()

    def nothing_is_left() -> bool:
        pods: list[Json] = get("pods", "-n", namespace)["items"]
        return pods == []

    eventually(nothing_is_left, timeout=45)


def test_values_of_a_secret_become_environment(sandbox: Sandboxes, namespace: str) -> None:
    kubectl("create", "secret", "generic", "db", "-n", namespace, "--from-literal=password=s3cret")
    kubectl("create", "configmap", "app", "-n", namespace, "--from-literal=MODE=fast")
    box = sandbox(
        env=[
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
            {"name": "PLAIN", "value": "as written"},
        ],
        envFrom=[{"configMapRef": {"name": "app"}}],
    ).wait()
    assert box.output('echo "$PASSWORD/$PLAIN/$MODE"') == "s3cret/as written/fast"


def test_fields_that_have_no_effect_are_named(sandbox: Sandboxes) -> None:
    box = sandbox(podTemplate={"spec": {"restartPolicy": "Always"}}).wait()
    honored = box.condition("SpecHonored")
    assert (honored["status"], honored["reason"]) == ("False", "Overridden")
    assert "podTemplate.spec.restartPolicy" in honored["message"]


@pytest.mark.parametrize("name", ["a", "box-0123456789-0123456789-0123456789-0123456789-0123456789ab"])
def test_short_and_long_names_work(sandbox: Sandboxes, name: str) -> None:
    box = sandbox(name).wait()
    assert box.output("hostname") == name
