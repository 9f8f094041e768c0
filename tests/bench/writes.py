"""The operator's API writes, all of them: per cold start, per warm claim, and when it starts into a converged
cluster. Who wrote what, the API server's audit log says.
"""

import subprocess

from tests.bench.api import Api, Json
from tests.bench.cluster import SYSTEM, kubectl
from tests.bench.numbers import Numbers
from tests.bench.pods import NAMESPACE, OURS, SANDBOXES, SMALL, manifest
from tests.bench.scale.processes import wait_for
from tests.bench.stats import Row, Section
from tests.support.writes import operator_writes

LARGE: Json = {**SMALL, "workspace": {"size": "1Gi"}, "ports": [{"port": 8000}]}


def measure(api: Api, *, sandboxes: int) -> Section:
    """Starts sandboxes one after the other, then restarts the operator."""
    plain = _per_start(api, SMALL, name="writes-plain", count=sandboxes)
    large = _per_start(api, LARGE, name="writes-large", count=sandboxes)
    warm = _per_claim(api, SMALL, name="writes-warm", count=sandboxes)
    kept = _per_claim(api, {**SMALL, "workspace": {"size": "1Gi"}}, name="writes-kept", count=sandboxes)
    before = _writes()
    kubectl("rollout", "restart", "-n", SYSTEM, "deploy/sandpod-operator")
    kubectl("rollout", "status", "-n", SYSTEM, "deploy/sandpod-operator", "--timeout=60s")
    wait_for("the operator has looked at everything", _converged, within=60)
    restart = _writes() - before
    for plural in ("sandboxes", "sandboxpools", "sandboxtemplates"):
        api.request("DELETE", f"{OURS}/{plural}")
    how = f"all that the operator writes for them; {sandboxes} starts"
    claimed = f"of what the sandbox has then; {sandboxes} claims"
    return Section(
        title="API writes",
        rows=[
            Row(what="per cold start", figure=f"{plain:.1f}", goal="≤ 4", how=how),
            Row(what="… with a workspace and a port", figure=f"{large:.1f}", goal="≤ 6", how=how),
            Row(what="per warm claim", figure=warm, goal="≤ 2", how=claimed),
            Row(what="… with a workspace", figure=kept, goal="≤ 2", how=claimed),
            Row(
                what="operator restarted, all converged",
                figure=f"{restart}",
                goal="0",
                how=f"{4 * sandboxes} sandboxes Running",
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


def _per_claim(api: Api, spec: Json, *, name: str, count: int) -> str:
    """Of a sandbox whose pool has a pod for it, until it is Ready; and then until the pool is full again."""
    api.request("POST", f"{OURS}/sandboxtemplates", manifest(name, spec, kind="SandboxTemplate"))
    pool: Json = {"replicas": count, "templateRef": {"name": name}}
    api.request("POST", f"{OURS}/sandboxpools", manifest(name, pool, kind="SandboxPool"))
    full = ("wait", "-n", NAMESPACE, f"sandboxpool/{name}", "--for=condition=Ready", "--timeout=120s")
    kubectl(*full)
    begun = len(operator_writes(NAMESPACE))
    boxes: list[set[str]] = []
    for i in range(count):
        _start(api, f"{name}-of-{i}", {"poolRef": {"name": name}})
        status = api.request("GET", f"{SANDBOXES}/{name}-of-{i}")["status"]
        assert status["pool"] == name, "it started cold"
        boxes.append({f"{name}-of-{i}", status["podName"], status.get("workspaceClaim", "")})
    kubectl(*full)
    written = operator_writes(NAMESPACE)[begun:]
    until = after = 0
    for box in boxes:
        kinds = [each.split()[1] for each in written if each.split()[-1] in box]
        ready = kinds.index("sandboxes/status") + 1
        until, after = until + ready, after + len(kinds) - ready
    return f"{until / count:.1f} until it is Ready, {after / count:.1f} after that"


def _start(api: Api, name: str, spec: Json) -> str:
    """Its UID, once it is Ready."""
    made = api.request("POST", SANDBOXES, manifest(name, spec))
    kubectl("wait", "-n", NAMESPACE, f"sandbox/{name}", "--for=condition=Ready", "--timeout=60s")
    return made["metadata"]["uid"]


def _converged() -> bool:
    path = f"/api/v1/namespaces/{SYSTEM}/services/sandpod-operator:metrics/proxy/metrics"
    try:
        return Numbers(kubectl("get", "--raw", path)).converged
    except subprocess.CalledProcessError:
        # Ready since a moment: not everybody knows its address.
        return False


def _writes() -> int:
    return len(operator_writes(NAMESPACE)) + len(operator_writes(SYSTEM))
