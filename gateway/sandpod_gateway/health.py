"""What the kubelet, Prometheus and the operator ask, on a plain port of its own: alive, ready, metrics, and
what is in reach.
"""

from collections.abc import Callable
from typing import Final

from aiohttp import web

from .metrics import CONTENT_TYPE, Metrics
from .reach import PATH as REACH
from .reach import Reach

LIVE: Final = frozenset(("/livez", "/healthz"))
READY: Final = "/readyz"


class Health:
    """`missing` says what the gateway still waits for; ready is when that is nothing."""

    def __init__(self, *, missing: Callable[[], list[str]]) -> None:
        self._missing = missing

    def answer(self, path: str) -> web.Response | None:
        """The answer to a health question, at whichever port it is asked; None when it is none."""
        if path in LIVE:
            return web.Response(text="ok\n")
        if path != READY:
            return None
        if missing := self._missing():
            return web.Response(status=503, text=f"not ready: {', '.join(missing)}\n")
        return web.Response(text="ok\n")


class HealthServer:
    def __init__(self, *, health: Health, metrics: Metrics, reach: Reach) -> None:
        self._health = health
        self._metrics = metrics
        self._reach = reach

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if path == "/metrics":
            return web.Response(body=self._metrics.text().encode(), headers={"Content-Type": CONTENT_TYPE})
        if path == REACH:
            return await self._reach.answer()
        return self._health.answer(path) or web.Response(status=404, text="not found\n")
