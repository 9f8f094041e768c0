"""One run, step by step: raw pods, a storm of sandboxes, quiet, a restart of the operator, all asleep."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.bench.api import Api, Json
from tests.bench.cluster import KUBECONFIG
from tests.bench.numbers import Numbers
from tests.bench.scale.counts import Served, served
from tests.bench.scale.nodes import SELECTOR, TOLERATION
from tests.bench.scale.operator_process import NAMESPACE, Operator
from tests.bench.scale.processes import Use, wait_for
from tests.bench.scale.storm import Arrivals, Request, gone, in_phase, send

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SANDBOXES = f"/apis/sandpod.dev/v1alpha1/namespaces/{NAMESPACE}/sandboxes"
SETTLE_SECONDS = 10.0
# For what a quiet machine does in seconds: a busy one must not lose a run of minutes by it.
PATIENCE = 300.0
# Slower than so many per second, a storm is not worth waiting for.
SLOWEST = 3
LAST_WORDS: Json = {
    "reason": "idle",
    "lastActiveAt": "2026-01-02T03:04:05Z",
    "endedAt": "2026-01-02T03:14:05Z",
    "saved": True,
    "running": {},
    "sessions": [{"id": "default", "cwd": "/workspace"}],
}


@dataclass(kw_only=True)
class Storm:
    """Many requests at once, until the last object was as wanted; what the operator used and wrote in it."""

    count: int
    sent_per_second: float
    done_per_second: float
    latencies: list[float]
    use: Use
    writes: Counter[str]
    # As the API server counted them.
    counted: Counter[str]
    # What the API server did for everybody until the last object was as wanted, and in how many seconds
    served: Served
    seconds: float


@dataclass(kw_only=True)
class Quiet:
    use: Use
    writes: float


@dataclass(kw_only=True)
class Restart:
    seconds: float
    cpu_seconds: float
    writes: float
    rss_mb: float


@dataclass(kw_only=True)
class Result:
    empty_rss_mb: float
    raw: Storm
    starts: Storm
    peak_rss_mb: float
    running: Quiet
    restart: Restart
    sleeps: Storm
    asleep: Quiet
    restart_asleep: Restart


class Run:
    """The operator runs, has nothing to do, and the simulated nodes are there."""

    def __init__(self, api: Api, operator: Operator, *, sandboxes: int, raw_pods: int, idle: float) -> None:
        self._api = api
        self._operator = operator
        self._sandboxes = sandboxes
        self._raw_pods = raw_pods
        self._idle = idle

    def measure(self) -> Result:
        empty = self._operator.program.rss_mb()
        raw = self._raw()
        starts = self._starts()
        peak = self._operator.program.peak_rss_mb()
        return Result(
            empty_rss_mb=empty,
            raw=raw,
            starts=starts,
            peak_rss_mb=peak,
            running=self._quiet(),
            restart=self._restart(),
            sleeps=self._sleeps(),
            asleep=self._quiet(),
            restart_asleep=self._restart(),
        )

    def _raw(self) -> Storm:
        """Pods of the same spec, which nobody of ours looks at."""
        template = self._template()

        def pod(name: str) -> Json:
            return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": template}

        names = [f"raw-{number}" for number in range(self._raw_pods)]
        _say(f"{len(names)} raw pods")
        requests = [("POST", PODS, pod(name)) for name in names]
        storm = self._storm(PODS, requests, in_phase("Running"), count=len(names))
        with Arrivals(Api(KUBECONFIG), PODS, gone) as ended:
            send([("DELETE", f"{PODS}/{name}", None) for name in names])
            ended.wait(len(names), within=len(names) / SLOWEST + 30)
        return storm

    def _template(self) -> Json:
        """The spec of a sandbox's pod, before it was scheduled."""
        with Arrivals(Api(KUBECONFIG), SANDBOXES, in_phase("Running")) as running:
            self._api.raw("POST", SANDBOXES, sandbox("template"))
            running.wait(1, within=60)
        spec: Json = self._api.request("GET", f"{PODS}/template")["spec"]
        with Arrivals(Api(KUBECONFIG), PODS, gone) as ended:
            self._api.raw("DELETE", f"{SANDBOXES}/template")
            ended.wait(1, within=60)
        return {name: value for name, value in spec.items() if name != "nodeName"}

    def _starts(self) -> Storm:
        _say(f"{self._sandboxes} sandboxes")
        requests = [("POST", SANDBOXES, sandbox(f"box-{number}")) for number in range(self._sandboxes)]
        return self._storm(SANDBOXES, requests, in_phase("Running"), count=self._sandboxes)

    def _sleeps(self) -> Storm:
        """Each pod ends as that of a runtime that goes to sleep: exit code 0 and its last words."""
        _say("all fall asleep")
        names = [f"box-{number}" for number in range(self._sandboxes)]
        requests = [("PATCH", f"{PODS}/{name}/status", _ended(name)) for name in names]
        return self._storm(SANDBOXES, requests, in_phase("Asleep"), count=self._sandboxes)

    def _storm(
        self,
        path: str,
        requests: Sequence[Request],
        holds: Callable[[str, Json], bool],
        *,
        count: int,
    ) -> Storm:
        program = self._operator.program
        before, served_before, cpu = self._operator.numbers(), served(self._api), program.cpu()
        with Arrivals(Api(KUBECONFIG), path, holds) as arrivals:
            begun = time.monotonic()
            sent = send(requests)
            all_sent = time.monotonic()
            arrivals.wait(count, within=count / SLOWEST + 30)
            ended = time.monotonic()
            served_until_then = served(self._api) - served_before
        wait_for("the operator has settled", self._operator.settled, within=PATIENCE)
        use = Use(seconds=ended - begun, cpu_seconds=program.cpu() - cpu, rss_mb=program.rss_mb())
        # Events are written a moment later.
        time.sleep(SETTLE_SECONDS)
        return Storm(
            count=count,
            sent_per_second=count / (all_sent - begun),
            done_per_second=count / (max(arrivals.moments.values()) - begun),
            latencies=[arrivals.moments[name] - moment for name, moment in sent.items()],
            use=use,
            writes=_writes(self._operator.numbers()) - _writes(before),
            counted=(served(self._api) - served_before).ours,
            served=served_until_then,
            seconds=ended - begun,
        )

    def _quiet(self) -> Quiet:
        _say(f"quiet, for {self._idle:.0f} s")
        before = _writes(self._operator.numbers())
        use = self._operator.program.use(self._idle)
        return Quiet(use=use, writes=(_writes(self._operator.numbers()) - before).total())

    def _restart(self) -> Restart:
        _say("a restart of the operator")
        before = served(self._api)
        seconds = self._operator.restart()
        cpu = self._operator.program.cpu()
        time.sleep(SETTLE_SECONDS)
        own = _writes(self._operator.numbers()).total()
        return Restart(
            seconds=seconds,
            cpu_seconds=cpu,
            writes=max(own, (served(self._api) - before).ours.total()),
            rss_mb=self._operator.program.rss_mb(),
        )


def sandbox(name: str) -> Json:
    return {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "Sandbox",
        "metadata": {"name": name},
        "spec": {"nodeSelector": SELECTOR, "tolerations": [TOLERATION]},
    }


def _ended(name: str) -> Json:
    terminated = {"exitCode": 0, "reason": "Completed", "message": json.dumps(LAST_WORDS)}
    container = {"name": "sandbox", "image": "simulated", "imageID": "", "ready": False, "restartCount": 0}
    return {
        "metadata": {"name": name},
        "status": {
            "phase": "Succeeded",
            "containerStatuses": [{**container, "state": {"terminated": terminated}}],
        },
    }


def _writes(numbers: Numbers) -> Counter[str]:
    found = numbers.by("api_writes_total", "verb", "resource")
    return Counter({what: int(value) for what, value in found.items()})


def _say(what: str) -> None:
    print(f"{time.strftime('%T')}  {what}", file=sys.stderr, flush=True)
