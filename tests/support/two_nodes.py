"""A second cluster, of two nodes, for faults that would end the tests of others: a node that is gone, an API
server that is killed. Sandpod's own pods live on the one node, and sandboxes may be on both.
"""

import contextlib
import os
from collections.abc import Generator

from tests.support.cluster import ROOT, Json, apply, environment, kubectl, run
from tests.support.waiting import eventually

CLUSTER = "nodes"
KEEPER = f"{CLUSTER}-control-plane"
WORKER = f"{CLUSTER}-worker"
_ROLE = "node-role.kubernetes.io/control-plane"
# Kubernetes' word for: somebody has made sure that nothing runs there any more.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@contextlib.contextmanager
def in_use() -> Generator[None]:
    """Meanwhile all that speaks to the cluster speaks to this one."""
    before = {name: os.environ.get(name) for name in ("SANDPOD_CLUSTER", "WORKERS")}
    os.environ.update(SANDPOD_CLUSTER=CLUSTER, WORKERS="1")
    environment.cache_clear()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        environment.cache_clear()


def is_there() -> bool:
    return run("docker", "container", "inspect", KEEPER, check=False).returncode == 0


def bring_up() -> None:
    """Until Sandpod is ready on it. One that is there already is used."""
    run(ROOT / "hack/cluster/up.sh", timeout=600)
    run(ROOT / "hack/images/build.sh", timeout=600)
    # On the worker alone, a sandbox could not come back when that is gone.
    kubectl("taint", "node", KEEPER, f"{_ROLE}:NoSchedule-", check=False)
    pinned = [f'--set-json={part}.nodeSelector={{"{_ROLE}":""}}' for part in ("operator", "gateway")]
    run(ROOT / "hack/install.sh", *pinned, timeout=300)


def take_down() -> None:
    run(ROOT / "hack/cluster/down.sh", timeout=120)


@contextlib.contextmanager
def cordoned(node: str) -> Generator[None]:
    """Meanwhile pods go to the other node."""
    kubectl("cordon", node)
    try:
        yield
    finally:
        kubectl("uncordon", node)


def drain(node: str, *, seconds: int) -> tuple[bool, str]:
    """Whether all could be moved in this time, and what kubectl said about it."""
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={seconds}s")
    done = kubectl("drain", node, *options, check=False, timeout=seconds + 60)
    return done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def silent(node: str) -> Generator[None]:
    """Meanwhile nothing on the node moves, and it answers nobody: as if its power was gone."""
    run("docker", "pause", node)
    try:
        yield
    finally:
        run("docker", "unpause", node)


def containers_on(node: str, namespace: str) -> list[str]:
    """Whose processes run there, whatever the API server says."""
    only = f'labels."io.kubernetes.pod.namespace"=={namespace}'
    ctr = ("docker", "exec", node, "ctr", "--namespace", "k8s.io")
    found = set(run(*ctr, "containers", "list", "--quiet", only).stdout.split())
    rows = (line.split() for line in run(*ctr, "tasks", "list").stdout.splitlines())
    return [row[0] for row in rows if row[0] in found and row[-1] == "RUNNING"]


def volume(name: str, *, namespace: str, only_on: str | None = None) -> Json:
    """The workspace of a sandbox: a claim whose volume moves from node to node, or cannot leave this one."""
    full = f"{namespace}-{name}"
    path = f"/kind/shared/{full}"
    run("docker", "exec", KEEPER, "mkdir", "-p", "-m", "0777", path)
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": [only_on]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}}
    size = {"storage": "1Gi"}
    common: Json = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": full},
            "spec": {
                **common,
                "capacity": size,
                "hostPath": {"path": path},
                "claimRef": {"namespace": namespace, "name": name},
                **({"nodeAffinity": affinity} if only_on else {}),
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {**common, "resources": {"requests": size}, "volumeName": full},
        },
    )
    return {"claimName": name}


def kill_the_api_server() -> None:
    """And wait until the kubelet has started it again."""
    before = _api_server_process()
    run("docker", "exec", KEEPER, "kill", "-9", before)
    eventually(lambda: _api_server_process() not in ("", before), timeout=120, every=0.5)
    wait_for_the_api_server()


def wait_for_the_api_server() -> None:
    def ready() -> bool:
        return kubectl("get", "--raw", "/readyz", check=False, timeout=60).stdout == "ok"

    eventually(ready, timeout=180, every=0.5)


def _api_server_process() -> str:
    return run("docker", "exec", KEEPER, "pidof", "kube-apiserver", check=False).stdout.strip()
