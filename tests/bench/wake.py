"""Wake: a sandbox that sleeps is asked for → its runtime has answered, beside a raw pod with the same
volumes, one after the other in turn.
"""

import time
from dataclasses import dataclass, field

from tests.bench import pods as on
from tests.bench.api import Api, Json, Watch, condition
from tests.bench.stats import Row, Section, p50, pair

CLAIM = "raw-workspace"
# As short as it may be: nobody wants to wait for a benchmark's sandboxes to sleep.
SLEEPY: Json = {"sleepAfter": "1s"}


@dataclass
class Wakes:
    raw: list[float] = field(default_factory=list[float])
    ready: list[float] = field(default_factory=list[float])
    answered: list[float] = field(default_factory=list[float])


def measure(api: Api, *, rounds: int) -> Section:
    """The first of each is not counted."""
    pods, sandboxes = api.watch(on.PODS), api.watch(on.SANDBOXES)
    template = on.raw_template(api, pods, sandboxes)
    without = _series(api, pods, sandboxes, name="wakes", spec=SLEEPY, template=template, rounds=rounds)
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    api.request("POST", on.CLAIMS, claim)
    spec: Json = {**SLEEPY, "workspace": {"size": "1Gi"}}
    template = on.with_workspace(template, CLAIM)
    within = _series(api, pods, sandboxes, name="wakes-files", spec=spec, template=template, rounds=rounds)
    pods.close()
    sandboxes.close()
    rows = [*_rows(without, "without a workspace"), *_rows(within, "with a workspace")]
    return Section(title=f"Wake ({rounds} each, in turn)", rows=rows)


def _rows(wakes: Wakes, what: str) -> list[Row]:
    ratio = p50(wakes.answered) / p50(wakes.raw)
    return [
        Row(
            what=f"raw pod {what}, create → Ready", figure=pair(wakes.raw), how="p50 / p90; the same volumes"
        ),
        Row(
            what=f"wake {what}, annotated → first exec answered",
            figure=pair(wakes.answered),
            how=f"p50 / p90; of it until Ready {pair(wakes.ready)}",
        ),
        Row(what=f"ratio {what}", figure=f"{ratio:.2f}", goal="≤ 1.5"),
    ]


def _series(
    api: Api, pods: Watch, sandboxes: Watch, *, name: str, spec: Json, template: Json, rounds: int
) -> Wakes:
    found = Wakes()
    api.request("POST", on.SANDBOXES, on.manifest(name, spec))
    for i in range(rounds + 1):
        _until(sandboxes, name, phase="Asleep", wakes=i)
        raw = on.raw_pod(api, pods, template, f"raw-{name}-{i}")
        began = time.perf_counter()
        annotations = {"sandpod.dev/wake-requested-at": f"bench-{i}"}
        api.request("PATCH", f"{on.SANDBOXES}/{name}", {"metadata": {"annotations": annotations}})
        ready = _until(sandboxes, name, phase="Running", wakes=i + 1)
        on.execute(api, name)
        answered = time.perf_counter()
        if i:
            found.raw.append(raw)
            found.ready.append(ready - began)
            found.answered.append(answered - began)
    on.delete(api, pods, f"{on.SANDBOXES}/{name}", name)
    return found


def _until(sandboxes: Watch, name: str, *, phase: str, wakes: int) -> float:
    """The moment at which the sandbox was first seen in this phase after so many wakes."""
    for moment, event in sandboxes.events(name):
        status: Json = event["object"].get("status") or {}
        reached = status.get("phase") == phase and (status.get("wakes") or 0) == wakes
        if reached and (phase != "Running" or condition(event["object"], "Ready")):
            return moment
    raise AssertionError("a watch goes on until it times out")
