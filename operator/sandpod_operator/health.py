"""/healthz, /readyz and /metrics. Health is about what a restart would cure: a loop that hangs, a key that
nobody gets to, a watch that has gone deaf. An API server that is away is not.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from .metrics import Metrics

PORT = 9090
BEAT = 1.0
# Beyond these a restart is the better way on.
LONGEST_LAG = 10.0
# A worker waits up to 30 s for one answer of the API server, and takes a few of them for a key.
OLDEST_KEY = 300.0
LONGEST_BEHIND = 180.0


class Queue(Protocol):
    def oldest(self) -> float: ...


class Sync(Protocol):
    @property
    def synced(self) -> bool: ...

    def behind(self) -> float: ...


class Health:
    def __init__(self, *, queue: Queue, pool_queue: Queue, resync: Sync, clock: Callable[[], float]) -> None:
        self._queues = {"sandbox": queue, "pool": pool_queue}
        self._resync = resync
        self._clock = clock
        self._last_beat = clock()
        self._last_event: float | None = None
        self.lag = 0.0

    def event_seen(self) -> None:
        self._last_event = self._clock()

    def last_event_age(self) -> float:
        return -1.0 if self._last_event is None else self._clock() - self._last_event

    async def beat(self) -> None:
        """Measures how late the loop is. The worst of it is forgotten by half every beat."""
        while True:
            self._last_beat = self._clock()
            await asyncio.sleep(BEAT)
            late = self._clock() - self._last_beat - BEAT
            self.lag = max(late, self.lag / 2)

    def troubles(self) -> list[str]:
        found: list[str] = []
        if self.lag > LONGEST_LAG:
            found.append(f"the event loop is {self.lag:.0f} s late")
        for what, queue in self._queues.items():
            if (oldest := queue.oldest()) > OLDEST_KEY:
                found.append(f"a {what} has waited for {oldest:.0f} s to be looked at")
        if (behind := self._resync.behind()) > LONGEST_BEHIND:
            found.append(f"the watch has missed something for {behind:.0f} s")
        return found

    @property
    def ready(self) -> bool:
        return self._resync.synced


async def serve(health: Health, metrics: Metrics, *, port: int = PORT) -> web.AppRunner:
    async def healthz(_: web.Request) -> web.Response:
        troubles = health.troubles()
        return web.Response(text="\n".join(troubles or ["ok"]) + "\n", status=503 if troubles else 200)

    async def readyz(_: web.Request) -> web.Response:
        if health.ready:
            return web.Response(text="ok\n")
        return web.Response(text="waiting for the first lists\n", status=503)

    async def numbers(_: web.Request) -> web.Response:
        return web.Response(text=metrics.text(), content_type="text/plain", charset="utf-8")

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", numbers)
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner
