"""The whole gateway put together: what it needs from the cluster, its doors, and its way from starting over
serving to draining. Everything else gets what it needs handed in from here.
"""

import asyncio
import contextlib
import logging
from functools import partial
from typing import Final

from sandpod_crds.errors import ApiError
from sandpod_crds.kube import Kube

from .activity import Activity
from .addresses import PODS, Addressing
from .aggregated import NAME, AggregatedApi
from .api_server import ApiServer
from .apis import Apis
from .audit import Audit
from .authorization import Authorizer
from .cluster import Cluster, persist
from .credentials import Credentials
from .door import Door
from .errors import NotConfigured
from .fastpath.path import WEB_SOCKET, fast_path
from .health import Health, HealthServer
from .leases import Leases
from .listener import Listener
from .listening import Listening
from .metrics import Metrics
from .pool import Pool
from .preview import Previews
from .proxy import Proxy
from .rates import Places
from .reach import Reach
from .reflector import Reflector
from .resolver import Resolver
from .routes import RouteTable
from .runtimes import Runtimes
from .sandbox_api import SandboxApi
from .settings import Settings
from .targets import Targets
from .upstream import ask_for_lease
from .v1 import V1Api
from .web_door import NAME as WEB
from .web_door import WebDoor

log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 5.0
# The kubelet and Prometheus; whoever else comes has no business there.
METRICS_CONNECTIONS: Final = 64
# Sooner than the programs themselves: Node's servers close an idle connection after 5 s.
APP_IDLE_SECONDS: Final = 4.0
HAND_OVER_SECONDS: Final = 1.0


class Gateway:
    def __init__(
        self,
        *,
        settings: Settings,
        kube: Kube,
        audit: Audit | None = None,
        addressing: Addressing = PODS,
    ) -> None:
        self._settings = settings
        self._kube = kube
        self._addressing = addressing
        self._cluster = Cluster(kube=kube, settings=settings)
        self.table = RouteTable()
        self._reflector = Reflector(kube=kube, table=self.table)
        self._authorizer = Authorizer(kube=kube, cache_seconds=settings.authorization_cache_seconds)
        self._pool = Pool(
            per_address=settings.max_requests_per_sandbox,
            total=settings.max_requests,
            connect_timeout=settings.connect_timeout_seconds,
        )
        self._apps = Pool(
            per_address=settings.max_requests_per_sandbox,
            total=settings.max_requests,
            connect_timeout=settings.connect_timeout_seconds,
            idle_seconds=APP_IDLE_SECONDS,
        )
        self._tenants = Places(
            each=settings.max_requests_per_namespace,
            total=settings.max_requests,
            full="as many requests to sandboxes of this namespace as are taken here are under way",
        )
        self._api_server = ApiServer(kube.configuration)
        self._health = Health(missing=self._missing)
        self._metrics = self._gauges()
        self._resolver = Resolver(kube=kube, table=self.table, settings=settings, metrics=self._metrics)
        self._plain = Listener(
            HealthServer(health=self._health, metrics=self._metrics, reach=Reach(settings)).handle,
            max_connections=METRICS_CONNECTIONS,
            per_source=METRICS_CONNECTIONS // 4,
        )
        self._audit = audit or Audit()
        self._door: Door | None = None
        self._secure: Listener | None = None
        self._web_door: Door | None = None
        self._web: Listener | None = None
        self.draining = False

    @property
    def https_port(self) -> int | None:
        """None until the certificates are there."""
        return None if self._secure is None else self._secure.port

    @property
    def http_port(self) -> int | None:
        """None until the installation's key is there."""
        return None if self._web is None else self._web.port

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
                works = (self._reflector.run(), self._sweep(), self._serve(stop))
                tasks = [group.create_task(work) for work in works]
                await stop.wait()
                await self._drain()
                for task in tasks:
                    task.cancel()
        finally:
            for listener in (self._secure, self._web, self._plain):
                if listener is not None:
                    await listener.close()
            self._pool.close()
            self._apps.close()
            await self._api_server.close()

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
        proxy = Proxy(pool=self._pool, apps=self._apps, leases=leases)
        runtimes = Runtimes(key=key, address_of=self._addressing.control)
        sandboxes = SandboxApi(
            authorizer=self._authorizer,
            resolver=self._resolver,
            proxy=proxy,
            runtimes=runtimes,
            metrics=self._metrics,
            tenants=self._tenants,
        )
        fast = fast_path(settings=self._settings, leases=leases, table=self.table, metrics=self._metrics)
        apis = Apis(
            settings=self._settings,
            kube=self._kube,
            server=self._api_server,
            table=self.table,
            key=key,
            sandboxes=sandboxes,
            authorizer=self._authorizer,
            metrics=self._metrics,
            draining=lambda: self.draining,
            fast=fast,
        )
        activity = Activity(leases=leases, lease_seconds=self._settings.lease_seconds)
        api = AggregatedApi(
            subresources=apis.subresources,
            health=self._health,
            credentials=credentials,
            rates=apis.rates,
            draining=lambda: self.draining,
        )
        self._door = Door(name=NAME, serve=api.serve, audit=self._audit, metrics=self._metrics)
        secure = Listener(self._door.handle, max_connections=self._settings.max_connections)
        await secure.listen(port=self._settings.https_port, tls=credentials.tls.listening)
        self._secure = secure
        log.info("serving the aggregated API on port %d", secure.port)
        previews = self._settings.site and Previews(
            targets=Targets(site=self._settings.site, key=key, table=self.table),
            private=apis.private,
            resolver=self._resolver,
            proxy=proxy,
            activity=activity,
            listening=Listening(),
            runtimes=runtimes,
            app_address=self._addressing.app,
            port_wait_seconds=self._settings.port_wait_seconds,
            tenants=self._tenants,
            metrics=self._metrics,
            fast=fast,
        )
        await self._serve_web(previews=previews, api=apis.v1)
        await asyncio.gather(
            activity.run(),
            *([] if fast is None else [fast.run()]),
            credentials.refresh_forever(interval=self._settings.refresh_seconds),
            self._stop_when_key_changes(key, stop),
        )

    async def _serve_web(self, *, previews: Previews | None, api: V1Api) -> None:
        settings = self._settings
        web = WebDoor(
            settings=settings,
            previews=previews,
            api=api.serve,
            health=self._health,
            draining=lambda: self.draining,
        )
        self._web_door = Door(name=WEB, serve=web.serve, audit=self._audit, metrics=self._metrics)
        listener = Listener(
            self._web_door.handle,
            max_connections=settings.most_from_haproxy if settings.sockets else settings.max_connections,
            per_source=settings.max_connections_per_source,
            trusted=settings.trusted_proxies,
        )
        if settings.sockets:
            await listener.listen_at(f"{settings.sockets}/{WEB_SOCKET}")
        else:
            await listener.listen(port=settings.http_port)
        self._web = listener
        log.info("serving previews on %s", f"port {listener.port}" if listener.port else WEB_SOCKET)

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
        doors = [door for door in (self._door, self._web_door) if door is not None]
        log.info("draining: %d requests under way", sum(door.under_way for door in doors))
        # Endpoints and API server learn of it only now. Until then a closed port would be a refused request.
        await asyncio.sleep(self._settings.drain_delay_seconds)
        if self._secure is not None:
            self._secure.stop_accepting()
        if self._settings.sockets:
            # HAProxy stops at the same time, and hands over what it has accepted until then.
            await asyncio.sleep(HAND_OVER_SECONDS)
        if self._web is not None:
            self._web.stop_accepting()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                asyncio.gather(*(door.idle.wait() for door in doors)), self._settings.drain_seconds
            )
        if under_way := sum(door.under_way for door in doors):
            log.warning("cutting off %d requests that did not end in time", under_way)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._pool.sweep()
            self._apps.sweep()

    def _missing(self) -> list[str]:
        missing = {
            "draining": self.draining,
            "no list of sandboxes yet": not self._reflector.synced.is_set(),
            "no key, certificate or front-proxy CA yet": self._web is None,
        }
        return [text for text, is_missing in missing.items() if is_missing]

    def _gauges(self) -> Metrics:
        return Metrics(
            gauges={
                "routes": ("Sandboxes in the route table.", lambda: len(self.table)),
                "watch_age_seconds": ("Since the API server last told something.", self._reflector.age),
                "connections": (
                    "Open connections of clients, and of HAProxy.",
                    lambda: sum(each.open for each in (self._secure, self._web) if each is not None),
                ),
                "waiting_requests": (
                    "Requests that stand still until their sandbox can take them.",
                    lambda: self._resolver.waiting,
                ),
                "runtime_requests": (
                    "Requests under way to runtimes and programs.",
                    lambda: self._pool.busy + self._apps.busy,
                ),
                "runtime_idle_connections": (
                    "Connections kept for later.",
                    lambda: self._pool.idle + self._apps.idle,
                ),
                "authorization_hits_total": ("Decisions remembered.", lambda: self._authorizer.hits),
                "authorization_misses_total": ("Decisions asked for.", lambda: self._authorizer.misses),
            }
        )
