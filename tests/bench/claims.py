"""Warm claims: Sandbox created → first exec answered, when a pool has pods waiting. One at a time beside raw
pods, and then many a second while the pool refills.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from tests.bench import pods as on
from tests.bench.api import Api, Json, Watch, condition
from tests.bench.cluster import KUBECONFIG
from tests.bench.stats import Row, Section, ms, p50, p99, pair

T = TypeVar("T")

POOL = "warm"
SINGLE = 4
# One for each that the storm takes, and some: two cores refill more slowly.
STORM_POOL = 210
PER_SECOND, SECONDS = 20, 10
CLAIMS = PER_SECOND * SECONDS
STORMS = 3
CLIENTS = 64


def measure(api: Api, *, rounds: int) -> Section:
    """The first of each is not counted."""
    pods, sandboxes = api.watch(on.PODS), api.watch(on.SANDBOXES)
    template = on.raw_template(api, pods, sandboxes)
    api.request("POST", f"{on.OURS}/sandboxtemplates", on.manifest(POOL, on.SMALL, kind="SandboxTemplate"))
    pool: Json = {"replicas": SINGLE, "templateRef": {"name": POOL}}
    api.request("POST", f"{on.OURS}/sandboxpools", on.manifest(POOL, pool, kind="SandboxPool"))
    raw: list[float] = []
    warm: list[float] = []
    for i in range(rounds + 1):
        seconds = on.raw_pod(api, pods, template, f"raw-claim-{i}")
        _filled(api, SINGLE)
        claimed = _claim(api, sandboxes, f"claim-{i}")
        api.request("DELETE", f"{on.SANDBOXES}/claim-{i}")
        if i:
            raw.append(seconds)
            warm.append(claimed)
    # Whoever watches on has a part in the load that is measured next.
    pods.close()
    sandboxes.close()
    rows = [
        Row(what="raw pod, create → Ready", figure=pair(raw), how="p50 / p90"),
        Row(
            what="Sandbox created → first exec answered, warm",
            figure=pair(warm),
            how=f"p50 / p90; one at a time, {rounds} of each in turn",
        ),
        Row(what="ratio of the two p50", figure=f"{p50(warm) / p50(raw):.2f}", goal="≤ 0.25"),
        *_storms(api, raw=p50(raw), template=template),
    ]
    for plural in ("sandboxpools", "sandboxtemplates"):
        api.request("DELETE", f"{on.OURS}/{plural}/{POOL}")
    # What is measured next shall not share the cores with hundreds of pods that end.
    _until(lambda: not api.request("GET", on.PODS)["items"], never="there are still pods")
    return Section(title="Warm claim", rows=rows)


def _storms(api: Api, *, raw: float, template: Json) -> list[Row]:
    """Several, for how long the slowest of 200 take is a matter of what the node does in that moment."""
    api.request("PATCH", f"{on.OURS}/sandboxpools/{POOL}", {"spec": {"replicas": STORM_POOL}})
    storms = [_storm(api) for _ in range(STORMS)]
    disturbed = _storm(api, beside=lambda over: _raw_pods(template, over))
    raw_pods = disturbed.beside
    times = [seconds for storm in storms for seconds in storm.times]
    return [
        Row(
            what=f"{PER_SECOND} a second for {SECONDS} s from a pool of {STORM_POOL}",
            figure=pair(times),
            how=f"p50 / p90 of {STORMS} such storms; {len(times)} of {STORMS * CLAIMS} answered, "
            f"{sum(storm.cold for storm in storms)} of them by a cold start; clients that are connected "
            "already, nothing deleted before the end",
        ),
        Row(
            what="p99 of each storm",
            figure=", ".join(ms(p99(storm.times)) for storm in storms),
            goal=f"< {ms(raw)}, the raw pod's p50",
        ),
        Row(
            what="p99 of one more, while raw pods start one after the other",
            figure=ms(p99(disturbed.times)),
            goal=f"< {ms(p50(raw_pods))}, their p50",
            how=f"{len(raw_pods)} of them, {pair(raw_pods)} (p50 / p90): what a start takes on a busy node",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Storm:
    times: list[float]
    cold: int
    # What went on beside it took.
    beside: list[float]


def _storm(api: Api, *, beside: Callable[[threading.Event], list[float]] = lambda _: []) -> Storm:
    """Leaves no sandbox behind. `beside` goes on until it is told that the claims are over."""
    _filled(api, STORM_POOL)
    # A new one: to fill the pool takes longer than the API server lets a watch go on.
    sandboxes = api.watch(on.SANDBOXES)
    clients, over = threading.local(), threading.Event()

    def client() -> Api:
        if not hasattr(clients, "api"):
            clients.api = Api(KUBECONFIG)
        return clients.api

    def one(i: int, due: float) -> float:
        return _claim(client(), sandboxes, f"storm-{i}", began=due)

    def connect(_: int) -> None:
        client().request("GET", "/version")
        connected.wait()

    connected = threading.Barrier(CLIENTS)
    with ThreadPoolExecutor(max_workers=CLIENTS) as workers, ThreadPoolExecutor(max_workers=1) as another:
        list(workers.map(connect, range(CLIENTS)))
        other = another.submit(beside, over)
        try:
            results = _paced(CLAIMS, lambda i, due: workers.submit(one, i, due))
            times = [result.result() for result in results]
        finally:
            over.set()
    sandboxes.close()
    made = api.request("GET", on.SANDBOXES)["items"]
    for each in made:
        api.request("DELETE", f"{on.SANDBOXES}/{each['metadata']['name']}")
    _until(lambda: not api.request("GET", on.SANDBOXES)["items"], never="there are still sandboxes")
    cold = sum("pool" not in each["status"] for each in made)
    return Storm(times=times, cold=cold, beside=other.result())


def _raw_pods(template: Json, over: threading.Event) -> list[float]:
    """Starts raw pods, one after the other; what each of them took."""
    api = Api(KUBECONFIG)
    pods = api.watch(on.PODS, labels=on.RAW_SELECTOR)
    took: list[float] = []
    # Of fewer than two there are no percentiles.
    while len(took) < 2 or not over.is_set():
        took.append(on.raw_pod(api, pods, template, f"beside-{len(took)}"))
    pods.close()
    return took


def _paced(count: int, submit: Callable[[int, float], T]) -> list[T]:
    """At even distances, whether the ones before have ended or not; from when it is due, each one counts."""
    began = time.perf_counter()
    results: list[T] = []
    for i in range(count):
        due = began + i / PER_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
        results.append(submit(i, due))
    return results


def _claim(api: Api, sandboxes: Watch, name: str, *, began: float | None = None) -> float:
    began = time.perf_counter() if began is None else began
    api.request("POST", on.SANDBOXES, on.manifest(name, {"poolRef": {"name": POOL}}))
    next(moment for moment, event in sandboxes.events(name) if condition(event["object"], "Ready"))
    on.execute(api, name)
    return time.perf_counter() - began


def _filled(api: Api, count: int) -> None:
    """Until the pool has so many pods to give."""

    def ready() -> bool:
        status: Json = api.request("GET", f"{on.OURS}/sandboxpools/{POOL}").get("status") or {}
        return (status.get("readyReplicas") or 0) >= count

    _until(ready, never=f"the pool has not {count} ready pods")


def _until(check: Callable[[], bool], *, never: str) -> None:
    deadline = time.perf_counter() + 300
    while not check():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{never} after 300 s")
        time.sleep(0.1)
