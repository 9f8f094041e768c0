"""Workspaces: the volume that keeps a sandbox's files, from its first mount to its end."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.cluster import Json, apply, get, kubectl, run, sandpod
from tests.support.sandboxes import Sandboxes
from tests.support.waiting import eventually


def claim_of(namespace: str, name: str = "box-workspace") -> Json:
    return get("pvc", name, "-n", namespace)


def claim(name: str, namespace: str, **spec: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}, **spec},
    }


@pytest.fixture
def small_volume(namespace: str) -> Iterator[str]:
    """The name of a claim, of 32 MiB of a node's memory."""
    node: str = get("nodes")["items"][0]["metadata"]["name"]
    name, place = f"small-{namespace}", f"/var/lib/small-{namespace}"
    mount = f"mkdir {place} && mount -t tmpfs -o size=32m,mode=1777 tmpfs {place}"
    run("docker", "exec", node, "sh", "-c", mount)
    try:
        volume: Json = {"capacity": {"storage": "16Mi"}, "accessModes": ["ReadWriteOnce"]}
        volume |= {"storageClassName": "", "hostPath": {"path": place, "type": "Directory"}}
        apply(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume},
            claim("small", namespace, storageClassName="", volumeName=name),
        )
        yield "small"
    finally:
        kubectl("delete", "persistentvolume", name, "--wait=false", "--ignore-not-found")
        run("docker", "exec", node, "sh", "-c", f"umount --lazy {place} && rmdir {place}")


def test_files_outlive_the_pod(sandbox: Sandboxes) -> None:
    box = sandbox(workspace={"size": "1Gi"}).wait()
    assert "box-workspace" in box.condition("WorkspaceReady")["message"]
    box.exec("sh", "-c", "echo kept > /workspace/f")
    before: str = box.status()["podUID"]
    kubectl("delete", "pod", "box", "-n", box.namespace, "--timeout=60s")
    eventually(lambda: box.status().get("podUID") not in (None, before), timeout=60)

    assert box.wait().output("cat /workspace/f") == "kept"


def test_a_deleted_sandbox_takes_its_volume_with_it(sandbox: Sandboxes) -> None:
    box = sandbox(workspace={"size": "1Gi"}).wait()
    box.delete()

    eventually(lambda: not kubectl("get", "pvc", "-n", box.namespace).stdout, timeout=60)


def test_a_retained_volume_is_taken_up_by_the_next_sandbox_of_that_name(sandbox: Sandboxes) -> None:
    workspace = {"size": "1Gi", "reclaim": "Retain"}
    box = sandbox(workspace=workspace).wait()
    box.exec("sh", "-c", "echo kept > /workspace/f")
    volume = claim_of(box.namespace)["spec"]["volumeName"]
    box.delete()
    assert claim_of(box.namespace)["spec"]["volumeName"] == volume

    again = sandbox(workspace=workspace).wait()

    assert again.output("cat /workspace/f") == "kept"


def test_reclaim_can_be_changed_while_it_sleeps(sandbox: Sandboxes) -> None:
    box = sandbox(workspace={"size": "1Gi"}, sleepAfter="1s").wait()
    box.falls_asleep()
    box.apply(workspace={"size": "1Gi", "reclaim": "Retain"}, sleepAfter="1s")
    eventually(lambda: "ownerReferences" not in claim_of(box.namespace)["metadata"])
    box.delete()

    assert claim_of(box.namespace)["status"]["phase"] == "Bound"


def test_a_claim_that_is_there_can_be_named_and_is_never_deleted(sandbox: Sandboxes) -> None:
    apply(claim("data", sandbox.namespace))
    box = sandbox(workspace={"claimName": "data"}).wait()
    box.exec("sh", "-c", "echo mine > /workspace/f")
    box.delete()

    assert claim_of(sandbox.namespace, "data")["status"]["phase"] == "Bound"
    assert sandbox("other", workspace={"claimName": "data"}).wait().output("cat /workspace/f") == "mine"


def test_a_named_claim_that_is_not_there_is_told_and_waited_for(sandbox: Sandboxes) -> None:
    box = sandbox(workspace={"claimName": "data"})
    assert "Create it" in box.fails_with("ClaimNotFound")["message"]
    apply(claim("data", sandbox.namespace))
    box.wait()

    assert box.condition("WorkspaceReady")["reason"] == "Bound"


def test_a_full_disk_is_told_and_over_when_there_is_room(sandbox: Sandboxes, small_volume: str) -> None:
    box = sandbox(workspace={"claimName": small_volume}, keepAlive=True).wait()
    box.exec("sh", "-c", "head -c 40000000 /dev/zero > /workspace/large", check=False)

    assert "Delete files" in box.told("DiskFull")
    assert box.condition("WorkspaceReady")["reason"] == "DiskFull"
    # One can work in it all the same, or nobody could make room.
    box.exec("rm", "/workspace/large")
    eventually(lambda: box.condition("WorkspaceReady")["reason"] == "Bound", timeout=60)


def test_a_volume_that_never_comes_is_told_in_words(sandbox: Sandboxes) -> None:
    box = sandbox(workspace={"size": "1Gi", "storageClassName": "no-such-class"})
    eventually(lambda: box.condition("WorkspaceReady").get("reason") == "ClaimPending", timeout=60, every=0.5)

    assert "kubectl describe pvc box-workspace" in box.condition("WorkspaceReady")["message"]


def test_a_volume_that_is_deleted_before_the_pod_has_a_node_is_made_again(sandbox: Sandboxes) -> None:
    held = {"spec": {"schedulingGates": [{"name": "example.com/hold"}]}}
    box = sandbox(workspace={"size": "16Mi"}, podTemplate=held)
    box.fails_with("SchedulingGated")
    before = claim_of(box.namespace)["metadata"]["uid"]
    kubectl("delete", "pvc", "box-workspace", "-n", box.namespace, "--wait=false")
    eventually(lambda: claim_of(box.namespace)["metadata"]["uid"] != before)
    let_go = '[{"op": "remove", "path": "/spec/schedulingGates"}]'
    kubectl("patch", "pod", "box", "-n", box.namespace, "--type=json", f"--patch={let_go}")

    assert box.wait().output("cd /workspace && pwd") == "/workspace"


def test_a_class_that_cannot_grow_a_volume_is_told_and_the_sandbox_goes_on(sandbox: Sandboxes) -> None:
    box = sandbox(workspace={"size": "1Gi"}).wait()
    box.apply(workspace={"size": "2Gi"})
    eventually(lambda: box.condition("WorkspaceReady").get("reason") == "CannotGrow")

    assert box.condition()["status"] == "True"
    assert box.output("echo works") == "works"
    # What else is wanted of the volume is done.
    box.apply(workspace={"size": "2Gi", "reclaim": "Retain"})
    name = box.status()["workspaceClaim"]
    eventually(lambda: "ownerReferences" not in get("pvc", name, "-n", box.namespace)["metadata"])


def test_a_growing_size_is_asked_for_where_the_class_can(sandbox: Sandboxes) -> None:
    """That it grows takes a driver that this cluster has not: tests/unit/operator/test_workspace_ready.py."""
    growing = "e2e-growing"
    apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": growing},
            "provisioner": get("storageclass", "standard")["provisioner"],
            "allowVolumeExpansion": True,
        }
    )
    try:
        box = sandbox(workspace={"size": "1Gi", "storageClassName": growing}).wait()
        box.apply(workspace={"size": "2Gi", "storageClassName": growing})
        request = "{.spec.resources.requests.storage}"
        read = ("get", "pvc", "box-workspace", "-n", box.namespace, "-o", f"jsonpath={request}")
        eventually(lambda: kubectl(*read).stdout == "2Gi")
    finally:
        kubectl("delete", "storageclass", growing)


def test_setup_runs_once_for_each_workspace(sandbox: Sandboxes) -> None:
    spec: Json = {
        "workspace": {"size": "1Gi"},
        "sleepAfter": "1s",
        "setup": ["echo one >> log", "echo two >> log"],
    }
    box = sandbox(**spec).wait()
    assert box.output("cat /workspace/log") == "one\ntwo"
    box.falls_asleep()

    assert box.output("cat /workspace/log") == "one\ntwo"
    assert box.status()["setup"]["result"] == "Succeeded"


def test_a_setup_that_fails_is_told_with_the_end_of_its_output(sandbox: Sandboxes) -> None:
    box = sandbox(workspace={"size": "1Gi"}, setup=["true", "echo I am no teapot >&2; exit 3"]).wait()
    found = box.condition("WorkspaceReady")

    assert (found["status"], found["reason"]) == ("False", "SetupFailed")
    assert "I am no teapot" in found["message"]
    shown = kubectl(
        "get",
        "--raw",
        f"/apis/run.sandpod.dev/v1alpha1/namespaces/{box.namespace}/sandboxes/box/proxy/api/setup/log",
    ).stdout
    assert "I am no teapot" in shown


def test_nobody_is_let_in_before_the_setup_has_ended_but_its_log_is_read(sandbox: Sandboxes) -> None:
    wait = "while [ ! -e /tmp/go ]; do sleep 0.1; done"
    box = sandbox(setup=["echo begun", wait, "echo done > /workspace/f"])
    with ThreadPoolExecutor(1) as pool:
        # Asked for long before there is anything to read
        followed = pool.submit(sandpod, "logs", "box", "--setup", "-f", "-n", box.namespace)
        box.fails_with("SettingUp")
        assert "begun" in sandpod("logs", "box", "--setup", "-n", box.namespace).stdout
        assert not followed.done()
        kubectl("exec", "box", "-n", box.namespace, "--", "touch", "/tmp/go")
        assert "begun" in followed.result(timeout=60).stdout

    assert box.wait().output("cat /workspace/f") == "done"
