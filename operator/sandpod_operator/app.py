"""Puts the operator's parts together, starts them and ends them."""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from aiohttp import web
from sandpod_crds import __version__
from sandpod_crds.kube import Kube

from .bootstrap import find_runtime_mount, installation_key, wait_until_installed
from .certificates import Certificates
from .cluster import Cluster
from .drains import Drains
from .enforcement import Detector
from .events import Recorder
from .execute import Executor
from .gauges import add_gauges
from .health import Health, serve
from .kinds import POOL, SANDBOX, TEMPLATE, Kind
from .metered import Metered
from .metrics import Metrics
from .objects import Json, key_of
from .observations import Answer, Errand, Key
from .pool.look import concerned
from .pool.pools import Pools
from .pool.reconcile import PoolReconciler
from .protection import Protection
from .reconcile import Reconciler
from .resync import Resync
from .runtime_client import RuntimeClient
from .settings import Installation, Settings
from .store import Store
from .times import utc_now
from .whereabouts import whereabouts
from .workqueue import WorkQueue

# Each waits for the API server most of the time. More would only queue up there.
WORKERS = 32
# A pool's pods are made one after the other, so that whoever claims one finds the API server free.
POOL_WORKERS = 4
# A sandbox that has claimed a pod is in use at once. The start of the next pod would take its CPU.
REFILL_PAUSE = 0.25

log = logging.getLogger(__name__)


class App:
    def __init__(self, settings: Settings) -> None:
        loop = asyncio.get_running_loop()
        self.queue: WorkQueue[Key] = WorkQueue(clock=loop)
        self.store = Store(look_at=self.queue.add, clock=loop.time)
        self.pool_queue: WorkQueue[Key] = WorkQueue(clock=loop)
        self.metrics = Metrics()
        # Set when a part has died: the process ends, and starts anew.
        self.broken = asyncio.Event()
        self.cannot_start: Exception | None = None
        self._settings = settings
        self._clock = loop.time
        self._tasks: list[asyncio.Task[None]] = []
        self._health: Health | None = None
        self._resync: Resync | None = None
        self._kube: Kube | None = None
        self._runtimes: RuntimeClient | None = None
        self._pools: Pools | None = None
        self._protection: Protection | None = None
        self._server: web.AppRunner | None = None

    @property
    def api_server(self) -> str:
        assert self._kube is not None
        return self._kube.host

    async def start(self) -> None:
        cluster = await self._connect()
        await wait_until_installed(cluster)
        key = await installation_key(cluster, self._settings)
        installation = Installation(
            settings=self._settings,
            version=__version__,
            key=key,
            runtime_mount=await find_runtime_mount(cluster, self._settings),
        )
        runtimes = self._runtimes = RuntimeClient(
            key=key,
            answered=self._answered,
            metrics=self.metrics,
            now=utc_now,
            is_there=whereabouts(cluster),
        )
        recorder = Recorder(cluster=cluster, instance=os.uname().nodename, metrics=self.metrics, now=utc_now)
        detector = Detector(
            cluster=cluster, settings=self._settings, clock=self._clock, changed=self._look_at_all
        )
        pools = self._pools = Pools(
            cluster=cluster,
            store=self.store,
            metrics=self.metrics,
            now=utc_now,
            changed=self._refill,
        )
        executor = Executor(
            cluster=cluster,
            store=self.store,
            teller=recorder,
            asker=runtimes,
            pools=pools,
            metrics=self.metrics,
            now=utc_now,
        )
        reconciler = Reconciler(
            store=self.store,
            queue=self.queue,
            executor=executor,
            pools=pools,
            installation=installation,
            enforcement=lambda: detector.enforcement,
            metrics=self.metrics,
            now=utc_now,
        )
        pool_reconciler = PoolReconciler(
            cluster=cluster,
            store=self.store,
            queue=self.pool_queue,
            pools=pools,
            installation=installation,
            metrics=self.metrics,
            now=utc_now,
        )
        resync = self._resync = Resync(
            cluster=cluster,
            store=self.store,
            queue=self.queue,
            pool_queue=self.pool_queue,
            metrics=self.metrics,
            clock=self._clock,
        )
        self._protection = Protection(
            cluster=cluster,
            store=self.store,
            enabled=self._settings.protect_from_drain,
            synced=lambda: resync.synced,
            metrics=self.metrics,
            clock=self._clock,
        )
        health = self._health = Health(
            queue=self.queue, pool_queue=self.pool_queue, resync=resync, clock=self._clock
        )
        add_gauges(
            self.metrics,
            store=self.store,
            queue=self.queue,
            pool_queue=self.pool_queue,
            runtimes=runtimes,
            health=health,
            resync=resync,
        )
        self._server = await serve(health, self.metrics)
        for number in range(WORKERS):
            self._spawn(f"worker {number}", self._decide(resync, reconciler.work))
        for number in range(POOL_WORKERS):
            self._spawn(f"pool worker {number}", self._decide(resync, pool_reconciler.work))
        self._spawn("events", recorder.run())
        self._spawn("resync", resync.run())
        self._spawn("heartbeat", health.beat())
        self._spawn("drain protection", self._protection.run())
        patience = timedelta(seconds=self._settings.protect_from_drain_seconds)
        if self._settings.protect_from_drain and patience:
            drains = Drains(
                cluster=cluster,
                store=self.store,
                queue=self.queue,
                patience=patience,
                metrics=self.metrics,
                now=utc_now,
                clock=self._clock,
            )
            self._spawn("drains", drains.run())
        if self._settings.network.detect_enforcement:
            self._spawn("enforcement of NetworkPolicies", detector.run())
        if self._settings.certificates == "Managed":
            certificates = Certificates(
                cluster=cluster, settings=self._settings, metrics=self.metrics, now=utc_now
            )
            self._spawn("certificates", certificates.run())

    async def _connect(self) -> Cluster:
        """What every part gets, so that each write is counted."""
        self._kube = await Kube.connect()
        return Metered(self._kube, metrics=self.metrics)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._runtimes is not None:
            await self._runtimes.close()
        if self._server is not None:
            await self._server.cleanup()
        if self._kube is not None:
            await self._kube.close()

    def seen(self, kind: Kind, obj: Json, *, news: bool) -> None:
        """A watch has brought something about this object; `news` when it is more than our own write."""
        self.metrics.watch_events.add(resource=kind.plural)
        if self._health is not None:
            self._health.event_seen()
        # Whoever wrote has gone on deciding with what was answered.
        if kind is SANDBOX and self._protection is not None:
            gone = self.store.sandboxes.get(key_of(obj)) is None
            self._protection.touch(key_of(obj).namespace, gone=gone)
        for key in self.store.concerned(kind, obj) if news else ():
            self.queue.add(key)
        for key in concerned(kind, obj, self.store):
            if kind not in (POOL, TEMPLATE):
                self._refill(key)
            elif news:
                self.pool_queue.add(key)

    def relisted(self) -> None:
        if self._resync is not None:
            self._resync.relisted()

    def _look_at_all(self) -> None:
        for key in self.store.sandboxes:
            self.queue.add(key)

    def _refill(self, pool: Key) -> None:
        self.pool_queue.add_after(pool, REFILL_PAUSE)

    def _answered(self, key: Key, answer: Answer) -> None:
        if answer.errand is Errand.BIND and self._pools is not None:
            self._pools.forget_secrets(key)
        if self.store.put_answer(key, answer):
            self.queue.add(key)

    async def _decide(self, resync: Resync, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Not before all that there is has been read: what is not known yet would be made once more."""
        await resync.first_lists.wait()
        await work()

    def _spawn(self, name: str, part: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(part, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.critical("%s has ended, and so does the operator", task.get_name(), exc_info=task.exception())
            self.broken.set()
