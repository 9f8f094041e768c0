"""Sandbox apply → first exec answered, beside a raw pod's create → Ready, one after the other in turn.

The raw pod has the sandbox's own image, security context and resources, no token and no volume, so that the
difference is what Sandpod adds: its operator, its interpreter, the bind and the answer.
"""

import time
from dataclasses import dataclass

from tests.bench import pods as on
from tests.bench.api import Api, Watch, condition
from tests.bench.stats import Row, Section, p50, pair


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
    pods, sandboxes = api.watch(on.PODS), api.watch(on.SANDBOXES)
    raw: list[float] = []
    cold: list[ColdStart] = []
    template = on.raw_template(api, pods, sandboxes)
    for i in range(rounds + 1):
        raw_seconds = on.raw_pod(api, pods, template, f"raw-{i}")
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
    api.request("POST", on.SANDBOXES, on.manifest(name))
    ready = on.ready(sandboxes, name)
    on.execute(api, name)
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
    on.delete(api, pods, f"{on.SANDBOXES}/{name}", name)
    return ColdStart(
        pod_created=moments["created"] - began,
        scheduled=moments["scheduled"] - began,
        running=moments["running"] - began,
        ready=ready - began,
        answered=answered - began,
    )
