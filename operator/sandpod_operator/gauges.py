"""What there is at this moment, read from where it is kept whenever somebody asks for the metrics."""

import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sandpod_crds import __version__
from sandpod_crds.names import ConditionType, Phase

from .health import Health
from .metrics import Metrics
from .objects import Json, entries, section
from .observations import Key
from .resync import Resync
from .runtime_client import RuntimeClient
from .store import Cache, Store
from .workqueue import WorkQueue

# Beyond these, pools have no series of their own: somebody may make thousands of them.
MOST_POOLS: Final = 200
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def add_gauges(
    metrics: Metrics,
    *,
    store: Store,
    queue: WorkQueue[Key],
    pool_queue: WorkQueue[Key],
    runtimes: RuntimeClient,
    health: Health,
    resync: Resync,
) -> None:
    gauge = metrics.gauge
    gauge("queue_depth", "Sandboxes that wait to be looked at.", lambda: len(queue))
    gauge("queue_delayed", "Sandboxes to be looked at later.", lambda: queue.delayed)
    gauge("queue_oldest_seconds", "For how long the oldest has waited.", queue.oldest)
    gauge("pool_queue_depth", "Pools that wait to be looked at.", lambda: len(pool_queue))
    gauge("pool_queue_delayed", "Pools to be looked at later.", lambda: pool_queue.delayed)
    gauge("pool_queue_oldest_seconds", "For how long the oldest pool has waited.", pool_queue.oldest)
    gauge("asking", "Runtimes that are being asked to answer.", lambda: len(runtimes))
    gauge("loop_lag_seconds", "How late the event loop is.", lambda: health.lag)
    gauge("last_event_age_seconds", "Since the last watch event; -1 before one.", health.last_event_age)
    gauge("watch_behind_seconds", "For how long the watch has owed what a list has shown.", resync.behind)
    gauge("synced", "1 once the first lists have been read.", lambda: int(resync.synced))
    gauge("pods", "Pods of sandboxes and pools.", lambda: len(store.pods))
    gauge("sandboxes", "Sandboxes by phase.", lambda: phases(store.sandboxes), label="phase")
    gauge(
        "sandboxes_not_ready",
        "Sandboxes that are awake and not Ready, by the reason that they have.",
        lambda: not_ready(store.sandboxes),
        label="reason",
    )
    gauge(
        "pool_pods",
        "Warm pods: wanted, ready to be claimed, starting (pending).",
        lambda: pool_pods(store.pools),
        label=("namespace", "pool", "state"),
    )
    gauge(
        "pool_claimed",
        "Running sandboxes that came out of a pool.",
        lambda: pool_claimed(store.pools),
        label=("namespace", "pool"),
    )
    gauge("info", "The operator's version.", lambda: {__version__: 1}, label="version")
    _add_process(metrics)


def phases(sandboxes: Cache) -> dict[str, float]:
    # Every phase, so that one that has just become empty is 0 and not what it was.
    counts = Counter({str(phase): 0 for phase in Phase})
    counts.update(str(section(obj, "status").get("phase", "New")) for obj in _objects(sandboxes))
    return dict(counts)


def not_ready(sandboxes: Cache) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for obj in _objects(sandboxes):
        status = section(obj, "status")
        if status.get("phase") == Phase.ASLEEP:
            continue
        for condition in entries(status, "conditions"):
            if condition["type"] == ConditionType.READY and condition["status"] != "True":
                counts[condition.get("reason") or "Unknown"] += 1
    return dict(counts)


def pool_pods(pools: Cache) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for key, pool in _first(pools):
        status = section(pool, "status")
        found[*key, "wanted"] = section(pool, "spec").get("replicas") or 0
        found[*key, "ready"] = status.get("readyReplicas") or 0
        found[*key, "pending"] = status.get("pendingReplicas") or 0
    return found


def pool_claimed(pools: Cache) -> dict[tuple[str, ...], float]:
    return {tuple(key): section(pool, "status").get("claimed") or 0 for key, pool in _first(pools)}


def _add_process(metrics: Metrics) -> None:
    started = time.time()
    metrics.process("resident_memory_bytes", "Resident memory.", _resident_bytes)
    metrics.process("cpu_seconds_total", "CPU used so far, user and system.", _cpu_seconds)
    metrics.process("start_time_seconds", "When it started, in seconds since 1970.", lambda: started)


def _objects(cache: Cache) -> Iterator[Json]:
    return (obj for key in cache if (obj := cache.get(key)) is not None)


def _first(pools: Cache) -> Iterator[tuple[Key, Json]]:
    return ((key, pool) for key in sorted(pools)[:MOST_POOLS] if (pool := pools.get(key)) is not None)


def _resident_bytes() -> float:
    # The second number is the resident pages.
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
