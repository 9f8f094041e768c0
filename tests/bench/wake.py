"""Wake: a sandbox that sleeps is asked for → its runtime has answered, beside a raw pod with the same
volumes, one after the other in turn. And the same by a request to its preview URL, answered by its program.
"""

import time
from dataclasses import dataclass, field

from tests.bench import pods as on
from tests.bench.api import Api, Json, Watch, condition
from tests.bench.race import preview_client
from tests.bench.stats import Row, Section, ms, p50, pair

CLAIM = "raw-workspace"
PORT = 8000
# There within some milliseconds, so that it is not a program's own start that is measured.
PROGRAM = r"""exec perl -MIO::Socket::INET -e '
    $listening = IO::Socket::INET->new(LocalPort => 8000, Listen => 9, ReuseAddr => 1) or die;
    while ($client = $listening->accept) {
        while (<$client>) { last if /^\r?\n/ }
        print $client "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        close $client;
    }'"""
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
    by_preview = _by_preview(api, pods, sandboxes, rounds=rounds)
    pods.close()
    sandboxes.close()
    rows = [
        *_rows(without, "without a workspace"),
        *_rows(within, "with a workspace"),
        Row(
            what="wake by a preview URL → answered",
            figure=pair(by_preview),
            how="p50 / p90; one request from this machine, a small program in Perl",
        ),
        Row(
            what="more than an annotated wake without a workspace",
            figure=ms(p50(by_preview) - p50(without.answered)),
            goal="≤ 50 ms",
            how="difference of the p50",
        ),
    ]
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


def _by_preview(api: Api, pods: Watch, sandboxes: Watch, *, rounds: int) -> list[float]:
    name = "wakes-preview"
    process = {"name": "program", "command": PROGRAM, "port": PORT}
    spec: Json = {**SLEEPY, "ports": [{"port": PORT}], "processes": [process]}
    api.request("POST", on.SANDBOXES, on.manifest(name, spec))
    took: list[float] = []
    for i in range(rounds + 1):
        _until(sandboxes, name, phase="Asleep", wakes=i)
        url = api.request("GET", f"{on.SANDBOXES}/{name}")["status"]["ports"][0]["url"]
        with preview_client(url) as client:
            began = time.perf_counter()
            client.get("/").raise_for_status()
            if i:
                took.append(time.perf_counter() - began)
    on.delete(api, pods, f"{on.SANDBOXES}/{name}", name)
    return took


def _until(sandboxes: Watch, name: str, *, phase: str, wakes: int) -> float:
    """The moment at which the sandbox was first seen in this phase after so many wakes."""
    for moment, event in sandboxes.events(name):
        status: Json = event["object"].get("status") or {}
        reached = status.get("phase") == phase and (status.get("wakes") or 0) == wakes
        if reached and (phase != "Running" or condition(event["object"], "Ready")):
            return moment
    raise AssertionError("a watch goes on until it times out")
