"""Sandbox apply → first exec answered, beside a raw pod's create → Ready, one after the other in turn.

The raw pod has the sandbox's own image, security context and resources, no token and no volume, so that the
difference is what Sandpod adds: its operator, its interpreter, the bind and the answer.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.api import Api, Json, RefusedError, Watch, condition
from tests.bench.stats import Row, Section, p50, pair

NAMESPACE = "sandpod-bench"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SANDBOXES = f"/apis/sandpod.dev/v1alpha1/namespaces/{NAMESPACE}/sandboxes"
RUN = f"/apis/run.sandpod.dev/v1alpha1/namespaces/{NAMESPACE}/sandboxes"


@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """The moments of one cold start, in seconds since the request that created the Sandbox."""

    pod_created: float
    scheduled: float
    running: float
    ready: float
    answered: float


def measure(api: Api, *, rounds: int) -> Section:
    """Alternates raw pods and sandboxes; the first of each is not counted."""
    pods, sandboxes = api.watch(PODS), api.watch(SANDBOXES)
    raw: list[float] = []
    cold: list[ColdStart] = []
    template = _raw_template(api, pods, sandboxes)
    for i in range(rounds + 1):
        raw_seconds = _raw_pod(api, pods, template, f"raw-{i}")
        start = _sandbox(api, pods, sandboxes, f"cold-{i}")
        if i:
            raw.append(raw_seconds)
            cold.append(start)
    pods.close()
    sandboxes.close()
    return Section(title=f"Cold start ({rounds} each, in turn)", rows=_rows(raw, cold))


def _rows(raw: list[float], cold: list[ColdStart]) -> list[Row]:
    answered = [c.answered for c in cold]
    ratio = p50(answered) / p50(raw)
    return [
        Row(
            what="raw pod, create → Ready", figure=pair(raw), how="p50 / p90; same image, no token, no volume"
        ),
        Row(
            what="Sandbox apply → first exec answered",
            figure=pair(answered),
            how="p50 / p90; exec through the API server",
        ),
        Row(what="ratio of the two p50", figure=f"{ratio:.2f}", goal="≤ 1.5"),
        Row(what="of it, API and operator: apply → pod seen", figure=pair([c.pod_created for c in cold])),
        Row(
            what="of it, scheduling: pod seen → bound to a node",
            figure=pair([c.scheduled - c.pod_created for c in cold]),
        ),
        Row(
            what="of it, container: bound → kubelet says running",
            figure=pair([c.running - c.scheduled for c in cold]),
        ),
        Row(
            what="of it, interpreter, imports, bind: running → Sandbox Ready",
            figure=pair([c.ready - c.running for c in cold]),
            how="the interpreter starts before the kubelet says so",
        ),
        Row(
            what="of it, first answer: Ready → exec answered",
            figure=pair([c.answered - c.ready for c in cold]),
        ),
    ]


def _sandbox(api: Api, pods: Watch, sandboxes: Watch, name: str) -> ColdStart:
    began = time.perf_counter()
    api.request("POST", SANDBOXES, _manifest(name))
    ready = _ready(sandboxes, name)
    api.request("POST", f"{RUN}/{name}/proxy/api/execute", {"command": "true"})
    answered = time.perf_counter()
    moments: dict[str, float] = {}
    for moment, event in pods.events(name):
        obj = event["object"]
        moments.setdefault("created", moment)
        if condition(obj, "PodScheduled"):
            moments.setdefault("scheduled", moment)
        if obj["status"].get("podIP"):
            moments["running"] = moment
            break
    _delete(api, pods, f"{SANDBOXES}/{name}", name)
    return ColdStart(
        pod_created=moments["created"] - began,
        scheduled=moments["scheduled"] - began,
        running=moments["running"] - began,
        ready=ready - began,
        answered=answered - began,
    )


def _raw_pod(api: Api, pods: Watch, template: Json, name: str) -> float:
    began = time.perf_counter()
    api.request(
        "POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": template}
    )
    seconds = _ready(pods, name) - began
    _delete(api, pods, f"{PODS}/{name}", name)
    return seconds


def _raw_template(api: Api, pods: Watch, sandboxes: Watch) -> Json:
    """The spec of a sandbox's pod with `sleep` in the runtime's place."""
    name = "template"
    api.request("POST", SANDBOXES, _manifest(name))
    _ready(sandboxes, name)
    spec: Json = api.request("GET", f"{PODS}/{name}")["spec"]
    _delete(api, pods, f"{SANDBOXES}/{name}", name)
    assert not spec.get("volumes"), "a sandbox of the default image has no volume"
    container = spec["containers"][0]
    kept: Mapping[str, Json] = {k: container[k] for k in ("name", "image", "resources", "securityContext")}
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": spec["securityContext"],
        "containers": [{**kept, "command": ["sleep", "3600"]}],
    }


def _manifest(name: str) -> Json:
    return {"apiVersion": "sandpod.dev/v1alpha1", "kind": "Sandbox", "metadata": {"name": name}}


def _ready(watch: Watch, name: str) -> float:
    return next(moment for moment, event in watch.events(name) if condition(event["object"], "Ready"))


def _delete(api: Api, pods: Watch, path: str, name: str) -> None:
    """Waits until the pod is gone, so that its end does not disturb the next start."""
    api.request("DELETE", path)
    next(moment for moment, event in pods.events(name) if event["type"] == "DELETED")


def prepare(api: Api) -> None:
    """A namespace of our own."""
    try:
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    except RefusedError as refused:
        if refused.status != 409:
            raise


def clean_up(api: Api) -> None:
    """Removes the namespace with all that is left in it."""
    api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
