"""The operator's API writes, all of them: per cold start, and when it starts into a converged cluster. Who
wrote what, the API server's audit log says.
"""

import time

from tests.bench.api import Api, Json
from tests.bench.cluster import SYSTEM, kubectl
from tests.bench.pods import NAMESPACE, SANDBOXES, SMALL
from tests.bench.stats import Row, Section
from tests.support.writes import operator_writes

LARGE: Json = {**SMALL, "workspace": {"size": "1Gi"}, "ports": [{"port": 8000}]}


def measure(api: Api, *, sandboxes: int) -> Section:
    """Starts sandboxes one after the other, then restarts the operator."""
    plain = _per_start(api, SMALL, name="writes-plain", count=sandboxes)
    large = _per_start(api, LARGE, name="writes-large", count=sandboxes)
    before = _writes()
    kubectl("rollout", "restart", "-n", SYSTEM, "deploy/sandpod-operator")
    kubectl("rollout", "status", "-n", SYSTEM, "deploy/sandpod-operator", "--timeout=60s")
    time.sleep(5)  # what a restarted operator wants to write, it writes at once
    restart = _writes() - before
    api.request("DELETE", SANDBOXES)
    how = f"all that the operator writes for them; {sandboxes} starts"
    return Section(
        title="API writes",
        rows=[
            Row(what="per cold start", figure=f"{plain:.1f}", goal="≤ 4", how=how),
            Row(what="… with a workspace and a port", figure=f"{large:.1f}", goal="≤ 6", how=how),
            Row(
                what="operator restarted, all converged",
                figure=f"{restart}",
                goal="0",
                how=f"{2 * sandboxes} sandboxes Running",
            ),
        ],
    )


def _per_start(api: Api, spec: Json, *, name: str, count: int) -> float:
    """Of what is named after the sandboxes; their Ingresses, in the gateway's namespace, after their UIDs."""
    # The log goes on from run to run.
    begun = len(operator_writes(NAMESPACE))
    uids = tuple(_start(api, f"{name}-{i}", spec) for i in range(count))
    written = [each for each in operator_writes(NAMESPACE)[begun:] if f" {name}-" in each]
    written += [each for each in operator_writes(SYSTEM) if each.endswith(uids)]
    return len(written) / count


def _start(api: Api, name: str, spec: Json) -> str:
    """Its UID, once it is Ready."""
    manifest = {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "Sandbox",
        "metadata": {"name": name},
        "spec": spec,
    }
    made = api.request("POST", SANDBOXES, manifest)
    kubectl("wait", "-n", NAMESPACE, f"sandbox/{name}", "--for=condition=Ready", "--timeout=60s")
    return made["metadata"]["uid"]


def _writes() -> int:
    return len(operator_writes(NAMESPACE)) + len(operator_writes(SYSTEM))
