"""API writes per cold start, and of an operator that starts into a converged cluster.

The API server counts them, in `apiserver_request_total`. That counter names no client; so the count is of
what only the operator writes here: Sandbox status and pods. Its events are told by their reporting component.
"""

import json
import re
import time

from tests.bench.api import Api
from tests.bench.cluster import SYSTEM, kubectl
from tests.bench.pods import NAMESPACE, SANDBOXES
from tests.bench.stats import Row, Section

COUNTER = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.MULTILINE)
WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE"}


def measure(api: Api, *, sandboxes: int) -> Section:
    """Starts sandboxes one after the other, then restarts the operator."""
    before = _writes(api)
    for i in range(sandboxes):
        name = f"writes-{i}"
        manifest = {"apiVersion": "sandpod.dev/v1alpha1", "kind": "Sandbox", "metadata": {"name": name}}
        api.request("POST", SANDBOXES, manifest)
        kubectl("wait", "-n", NAMESPACE, f"sandbox/{name}", "--for=condition=Ready", "--timeout=60s")
    after = _writes(api)
    per_start = (after - before) / sandboxes
    kubectl("rollout", "restart", "-n", SYSTEM, "deploy/sandpod-operator")
    kubectl("rollout", "status", "-n", SYSTEM, "deploy/sandpod-operator", "--timeout=60s")
    time.sleep(5)  # what a restarted operator wants to write, it writes at once
    restart = _writes(api) - after - 1  # the one is the Deployment's: the new operator's own pod
    api.request("DELETE", SANDBOXES)
    return Section(
        title="API writes",
        rows=[
            Row(
                what="per cold start",
                figure=f"{per_start:.1f}",
                goal="≤ 4",
                how=f"pods, status, events; {sandboxes} starts",
            ),
            Row(
                what="operator restarted, all converged",
                figure=f"{restart:.0f}",
                goal="0",
                how=f"{sandboxes} sandboxes Running",
            ),
        ],
    )


def _writes(api: Api) -> float:
    return _counted(api) + _events()


def _counted(api: Api) -> float:
    total = 0.0
    for match in COUNTER.finditer(api.raw("GET", "/metrics").decode()):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', match["labels"]))
        if labels["verb"] not in WRITES:
            continue
        of_sandbox = labels["resource"] == "sandboxes" and labels["subresource"] == "status"
        of_pod = labels["resource"] == "pods" and labels["subresource"] == "" and labels["verb"] != "DELETE"
        if of_sandbox or of_pod:
            total += float(match["value"])
    return total


def _events() -> int:
    events = json.loads(kubectl("get", "events.events.k8s.io", "-n", NAMESPACE, "-o", "json"))["items"]
    ours = [e for e in events if "sandpod" in (e.get("reportingController") or "")]
    return sum(e.get("series", {}).get("count", e.get("deprecatedCount") or 1) for e in ours)
