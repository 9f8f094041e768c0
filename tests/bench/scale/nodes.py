"""Simulated nodes: objects without machines. kwok keeps them alive and plays their kubelets: each pod there
is Running a moment after it was scheduled, with the address of the stub runtime.
"""

import contextlib
import json
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path

from tests.bench.api import Api, Json, RefusedError
from tests.bench.cluster import ENV, KUBECONFIG, ROOT
from tests.bench.scale.processes import Program, wait_for

LABEL = "sandpod.dev/bench"
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
SELECTOR = {LABEL: "scale"}
TOLERATION = {"key": TAINT["key"], "operator": "Exists", "effect": "NoSchedule"}
PODS_EACH = 250

NOW = "{{ Now | Quote }}"


def _conditions(*kinds: str) -> list[Json]:
    return [{"type": kind, "status": "True", "lastTransitionTime": "NOW"} for kind in kinds]


def stages(address: str) -> list[Json]:
    """What kwok does with nodes and pods, as its configuration has it."""
    running = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": "NOW",
        "conditions": _conditions("Initialized", "Ready", "ContainersReady"),
        "containerStatuses": [
            {
                "name": "sandbox",
                "image": "simulated",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": "NOW"}},
            }
        ],
    }
    room = {"cpu": "1000", "memory": "4Ti", "ephemeral-storage": "16Ti", "pods": str(PODS_EACH)}
    node = {
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "simulated",
                "lastHeartbeatTime": "NOW",
                "lastTransitionTime": "NOW",
            }
        ],
        "allocatable": room,
        "capacity": room,
        "phase": "Running",
    }
    return [
        _stage("node-ready", "Node", [_not_ready()], {"statusTemplate": _template(node)}),
        _stage(
            "pod-running",
            "Pod",
            [_key(".metadata.deletionTimestamp", "DoesNotExist"), _key(".status.phase", "In", "Pending")],
            {"statusTemplate": _template(running)},
        ),
        _stage("pod-gone", "Pod", [_key(".metadata.deletionTimestamp", "Exists")], {"delete": True}),
    ]


def _template(status: Json) -> str:
    # JSON is YAML, and kwok's templates are text.
    return json.dumps(status).replace('"NOW"', NOW)


def _key(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _not_ready() -> Json:
    return _key('.status.conditions.[] | select( .type == "Ready" ) | .status', "NotIn", "True")


def _stage(name: str, kind: str, expressions: list[Json], following: Json) -> Json:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "next": following,
        },
    }


def own_address(api: Api) -> str:
    """This machine's address on the way to the cluster's nodes, which no pod can have."""
    nodes = api.request("GET", "/api/v1/nodes")["items"]
    addresses = [a["address"] for n in nodes for a in n["status"]["addresses"] if a["type"] == "InternalIP"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: the kernel only chooses the way.
        probe.connect((addresses[0], 9))
        return probe.getsockname()[0]


@contextlib.contextmanager
def simulated(api: Api, *, count: int, address: str, directory: Path) -> Generator[Program]:
    """So many nodes for the time of the block, with nothing left of them afterwards."""
    built = subprocess.run(
        [ROOT / "hack/tools/kwok/build.sh"], check=True, stdout=subprocess.PIPE, text=True, env=ENV
    )
    configuration = directory / "kwok.json"
    configuration.write_text("\n---\n".join(json.dumps(stage) for stage in stages(address)))
    command = [
        built.stdout.strip(),
        f"--kubeconfig={KUBECONFIG}",
        f"--config={configuration}",
        f"--manage-nodes-with-label-selector={LABEL}=scale",
        "--node-lease-duration-seconds=40",
        "--server-address=",
    ]
    with Program(*command, log=directory / "kwok.log", env=ENV, cwd=ROOT) as kwok:
        try:
            for number in range(count):
                _create_node(api, f"sandpod-scale-{number}")
            wait_for("simulated nodes are ready", lambda: _ready(api) == count, within=60)
            kwok.check()
            yield kwok
        finally:
            remove(api)


def remove(api: Api) -> None:
    """The nodes and what DaemonSets have put there."""
    nodes = _listed(api)
    api.request("DELETE", f"/api/v1/nodes?labelSelector={LABEL}%3Dscale")
    for name in [node["metadata"]["name"] for node in nodes]:
        # Until a moment ago they were put back at once.
        pods = api.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]
        for pod in pods:
            metadata = pod["metadata"]
            with contextlib.suppress(RefusedError):
                path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                api.request("DELETE", f"{path}?gracePeriodSeconds=0")


def _create_node(api: Api, name: str) -> None:
    labels = {**SELECTOR, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [TAINT]},
    }
    try:
        api.request("POST", "/api/v1/nodes", node)
    except RefusedError as refused:
        if refused.status != 409:
            raise


def _ready(api: Api) -> int:
    conditions = [node.get("status", {}).get("conditions", []) for node in _listed(api)]
    return sum(any(c["type"] == "Ready" and c["status"] == "True" for c in each) for each in conditions)


def _listed(api: Api) -> list[Json]:
    return api.request("GET", f"/api/v1/nodes?labelSelector={LABEL}%3Dscale")["items"]
