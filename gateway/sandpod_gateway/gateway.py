"""The whole gateway put together: what it needs from the cluster, its doors, and its way from starting over
serving to draining. Everything else gets what it needs handed in from here.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from sandpod_crds.errors import ApiError
from sandpod_crds.kube import Kube

from .addresses import Address, control_address
from .aggregated import NAME, AggregatedApi
from .audit import Audit
from .authorization import Authorizer
from .cluster import Cluster, persist
from .credentials import Credentials
from .door import Door
from .errors import NotConfigured
from .health import Health, HealthServer
from .leases import Leases
from .listener import Listener
from .metrics import Metrics
from .pool import Pool
from .proxy import Proxy
from .reach import Reach
from .reflector import Reflector
from .resolver import Resolver
from .routes import RouteTable
from .sandbox_api import SandboxApi
from .settings import Settings
from .upstream import ask_for_lease

log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 5.0
# The kubelet and Prometheus; whoever else comes has no business there.
METRICS_CONNECTIONS: Final = 64


class Gateway:
    """`address_of` turns a pod's IP into what is connected to; only tests need another than the default."""

    def __init__(
        self,
        *,
        settings: Settings,
        kube: Kube,
        audit: Audit | None = None,
        address_of: Callable[[str], Address] = control_address,
    ) -> None:
        self._settings = settings
        self._kube = kube
        self._address_of = address_of
        self._cluster = Cluster(kube=kube, settings=settings)
        self._table = RouteTable()
        self._reflector = Reflector(kube=kube, table=self._table)
        self._authorizer = Authorizer(kube=kube, cache_seconds=settings.authorization_cache_seconds)
        self._pool = Pool(
            per_address=settings.max_requests_per_sandbox,
            total=settings.max_requests,
            connect_timeout=settings.connect_timeout_seconds,
        )
        self._health = Health(missing=self._missing)
        self._metrics = self._gauges()
        self._resolver = Resolver(kube=kube, table=self._table, settings=settings, metrics=self._metrics)
        self._plain = Listener(
            HealthServer(health=self._health, metrics=self._metrics, reach=Reach(settings)).handle,
            max_connections=METRICS_CONNECTIONS,
        )
        self._audit = audit or Audit()
        self._door: Door | None = None
        self._secure: Listener | None = None
        self.draining = False

    @property
    def https_port(self) -> int | None:
        """None until the certificates are there."""
        return None if self._secure is None else self._secure.port

    @property
    def metrics_port(self) -> int:
        return self._plain.port

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set, then drains. A task that fails ends all of it, and the pod starts
        afresh.
        """
        try:
            await self._plain.listen(port=self._settings.metrics_port)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(work)
                    for work in (self._reflector.run(), self._sweep(), self._serve(stop))
                ]
                await stop.wait()
                await self._drain()
                for task in tasks:
                    task.cancel()
        finally:
            if self._secure is not None:
                await self._secure.close()
            await self._plain.close()
            self._pool.close()

    async def _serve(self, stop: asyncio.Event) -> None:
        key, credentials = await asyncio.gather(
            persist("the installation's key", self._cluster.key),
            persist("certificate and front-proxy CA", lambda: Credentials.load(self._cluster)),
        )
        leases = Leases(
            ask=partial(ask_for_lease, self._pool),
            seconds=self._settings.lease_seconds,
            metrics=self._metrics,
        )
        sandboxes = SandboxApi(
            authorizer=self._authorizer,
            resolver=self._resolver,
            proxy=Proxy(pool=self._pool, leases=leases),
            key=key,
            metrics=self._metrics,
            address_of=self._address_of,
        )
        api = AggregatedApi(
            sandboxes=sandboxes,
            health=self._health,
            credentials=credentials,
            draining=lambda: self.draining,
        )
        self._door = Door(name=NAME, serve=api.serve, audit=self._audit, metrics=self._metrics)
        secure = Listener(self._door.handle, max_connections=self._settings.max_connections)
        await secure.listen(port=self._settings.https_port, tls=credentials.tls.listening)
        self._secure = secure
        log.info("serving the aggregated API on port %d", secure.port)
        await asyncio.gather(
            credentials.refresh_forever(interval=self._settings.refresh_seconds),
            self._stop_when_key_changes(key, stop),
        )

    async def _stop_when_key_changes(self, key: bytes, stop: asyncio.Event) -> None:
        """New runtimes refuse the old key's credentials. Kubernetes starts us again, with the new key."""
        while True:
            await asyncio.sleep(self._settings.refresh_seconds)
            try:
                if await self._cluster.key() == key:
                    continue
            except (ApiError, NotConfigured) as error:
                log.warning("the installation's key cannot be read again: %s", error)
                continue
            log.error("the installation's key has changed: ending, to start with the new one")
            stop.set()
            return

    async def _drain(self) -> None:
        self.draining = True
        if self._secure is None or self._door is None:
            return
        log.info("draining: %d requests under way", self._door.under_way)
        # Endpoints and API server learn of it only now. Until then a closed port would be a refused request.
        await asyncio.sleep(self._settings.drain_delay_seconds)
        self._secure.stop_accepting()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._door.idle.wait(), self._settings.drain_seconds)
        if self._door.under_way:
            log.warning("cutting off %d requests that did not end in time", self._door.under_way)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._pool.sweep()

    def _missing(self) -> list[str]:
        missing = {
            "draining": self.draining,
            "no list of sandboxes yet": not self._reflector.synced.is_set(),
            "no key, certificate or front-proxy CA yet": self._secure is None,
        }
        return [text for text, is_missing in missing.items() if is_missing]

    def _gauges(self) -> Metrics:
        return Metrics(
            gauges={
                "routes": ("Sandboxes in the route table.", lambda: len(self._table)),
                "watch_age_seconds": ("Since the API server last told something.", self._reflector.age),
                "connections": (
                    "Open connections.",
                    lambda: 0 if self._secure is None else self._secure.open,
                ),
                "waiting_requests": (
                    "Requests that stand still until their sandbox can take them.",
                    lambda: self._resolver.waiting,
                ),
                "runtime_requests": ("Requests under way to runtimes.", lambda: self._pool.busy),
                "runtime_idle_connections": ("Connections kept for later.", lambda: self._pool.idle),
                "authorization_hits_total": ("Decisions remembered.", lambda: self._authorizer.hits),
                "authorization_misses_total": ("Decisions asked for.", lambda: self._authorizer.misses),
            }
        )
