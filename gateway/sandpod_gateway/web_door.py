"""The port for browsers and programs: hosts below the previews' domain are previews, every other host is the
API for whoever has a bearer token.
"""

from collections.abc import Callable
from typing import Final

from aiohttp import web

from .audit import Exchange
from .door import Serve
from .errors import NotFound
from .forwarded import sender_of
from .health import Health
from .preview import Previews, host_of
from .settings import Settings

NAME: Final = "web"


class WebDoor:
    """`api` is None where there is none."""

    def __init__(
        self,
        *,
        settings: Settings,
        previews: Previews | None,
        api: Serve | None,
        health: Health,
        draining: Callable[[], bool],
    ) -> None:
        self._site = settings.site
        self._trusted = settings.trusted_proxies
        self._previews = previews
        self._api = api
        self._health = health
        self._draining = draining
        self._behind_haproxy = bool(settings.sockets)

    async def serve(self, request: web.BaseRequest, exchange: Exchange) -> web.StreamResponse:
        exchange.keep_alive = not self._draining()
        scheme = self._site.scheme if self._site is not None else "http"
        if self._behind_haproxy:
            # Written by HAProxy, which has taken away what the client said of itself.
            exchange.source = request.headers.get("X-Forwarded-For", "")
            scheme = request.headers.get("X-Forwarded-Proto", scheme)
        else:
            sender = sender_of(request, peer=exchange.source, scheme=scheme, trusted=self._trusted)
            exchange.source, scheme = sender.source, sender.scheme
        host = host_of(request)
        if self._site is not None and self._previews is not None and self._site.covers(host):
            return await self._previews.serve(request, host, exchange, scheme=scheme)
        path = request.raw_path.partition("?")[0]
        if (answer := self._health.answer(path)) is not None:
            return answer
        if self._api is None:
            raise NotFound("there is nothing at this address")
        return await self._api(request, exchange)
