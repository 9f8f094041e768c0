"""Previews: from a host name to a program in a sandbox. The token is checked before anything is looked up
that costs, and before anything is woken; what it opens is one port of one sandbox and nothing else.
"""

import hmac
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from aiohttp import hdrs, web
from sandpod_crds import keys
from sandpod_crds.previews import Site

from . import pages, preview_headers
from .activity import Activity
from .addresses import Address
from .audit import Exchange
from .errors import BadRequest, NobodyListens, NotAllowed, NotFound, PodLeaving, Refusal, Unauthenticated
from .fastpath.path import FastPath
from .listening import Listening
from .proxy import Order, Proxy, Runtime
from .rates import Places
from .resolver import Resolver
from .routes import ExposedPort, Key, Route, RouteTable
from .tunnel import wants_tunnel
from .upload import Body
from .waiting import Patience

# People look at a page that tries again by itself rather than at nothing; programs have no such page.
_LONGEST_FOR_PEOPLE: Final = 5.0
_NOT_PASSED_ON: Final = frozenset(("CONNECT", "TRACE"))
_DERIVED: Final = 8192


@dataclass(frozen=True, slots=True)
class Addressing:
    """How a pod's IP becomes what is connected to; only tests need another than the default."""

    control: Callable[[str], Address]
    app: Callable[[str, int], Address]


@dataclass(frozen=True, slots=True)
class Target:
    key: Key
    route: Route
    port: ExposedPort


class Previews:
    def __init__(
        self,
        *,
        site: Site,
        key: bytes,
        table: RouteTable,
        resolver: Resolver,
        proxy: Proxy,
        activity: Activity,
        listening: Listening,
        addressing: Addressing,
        port_wait_seconds: float,
        tenants: Places,
        fast: FastPath | None = None,
    ) -> None:
        self._site = site
        self._table = table
        self._resolver = resolver
        self._proxy = proxy
        self._activity = activity
        self._listening = listening
        self._addressing = addressing
        self._port_wait = port_wait_seconds
        self._tenants = tenants
        self._fast = fast
        # Kept, because deriving them costs more than anything else that is done for a request here.
        self._token = lru_cache(maxsize=_DERIVED)(partial(_token, key))
        self._credential = lru_cache(maxsize=_DERIVED)(partial(_credential, key))

    async def serve(self, request: web.BaseRequest, host: str, exchange: Exchange) -> web.StreamResponse:
        """`host` without its port."""
        try:
            return await self._serve(request, host, exchange)
        except Refusal as refusal:
            exchange.reason = refusal.message
            return pages.show(pages.page_of(refusal), request)

    async def _serve(self, request: web.BaseRequest, host: str, exchange: Exchange) -> web.StreamResponse:
        target = self._find(host)
        exchange.namespace, exchange.sandbox = target.key
        exchange.verb, exchange.subresource = "preview", f"ports/{target.port.port}"
        if request.method in _NOT_PASSED_ON:
            raise NotAllowed(f"the method {request.method} is not passed on to sandboxes")
        if target.port.private:
            raise Unauthenticated("this port is private")
        path, upgrade = _path(request), wants_tunnel(request)
        body, patience = Body(request), Patience()
        while True:
            route = await self._resolver.ready_route(
                namespace=target.key[0],
                name=target.key[1],
                patience=patience,
                exchange=exchange,
                longest=self._longest(request),
            )
            # It may have been taken back while the request waited.
            target = self._find(host)
            runtime = self._runtime(target.key[0], route)
            address = self._addressing.app(route.pod_ip, target.port.port)
            order = Order(
                runtime=runtime,
                target=path,
                lines=preview_headers.to_app(
                    request.raw_headers,
                    host=request.headers[hdrs.HOST].encode(),
                    source=exchange.source,
                    scheme=self._site.scheme,
                    credentials_are_ours=target.port.private,
                ),
                upgrade=upgrade,
                app=address,
                to_client=preview_headers.to_browser,
            )
            try:
                with self._tenants.enter(target.key[0]), self._activity.of(runtime, exchange):
                    answer = await self._forward(body, order, address, exchange, target, patience)
            except PodLeaving as leaving:
                self._resolver.did_not_take_it(route, leaving, patience)
                if not body.resendable:
                    raise
                exchange.resent += 1
            else:
                if self._fast is not None:
                    self._fast.served(
                        host=host,
                        key=target.key,
                        route=route,
                        port=target.port,
                        runtime=runtime,
                        address=address,
                    )
                return answer

    async def _forward(
        self,
        body: Body,
        order: Order,
        address: Address,
        exchange: Exchange,
        target: Target,
        patience: Patience,
    ) -> web.StreamResponse:
        """Waits for a program that has yet to start; one that has listened before and has ended is not waited
        for.
        """
        limit = min(self._port_wait, self._longest(body.request))
        while True:
            try:
                return await self._proxy.forward(body, order, exchange)
            except NobodyListens:
                left = patience.left(limit)
                if left <= 0 or self._listening.has_been_seen(order.runtime.pod_uid, target.port.port):
                    raise
                with self._resolver.standing(target.key):
                    await self._listening.wait(address, seconds=left)
            finally:
                if exchange.status:
                    self._listening.saw(order.runtime.pod_uid, target.port.port)

    def _longest(self, request: web.BaseRequest) -> float:
        return _LONGEST_FOR_PEOPLE if pages.wants_page(request) else math.inf

    def _find(self, host: str) -> Target:
        address = self._site.address_in(host)
        if address is not None:
            for key, route in self._table.exposing(address.name):
                for port in route.ports:
                    if port.port != address.port or route.deleting:
                        continue
                    expected = self._token(route.uid, port.port, port.token_version)
                    if hmac.compare_digest(expected, address.token):
                        return Target(key=key, route=route, port=port)
        raise NotFound("no port of a sandbox has this address")

    def _runtime(self, namespace: str, route: Route) -> Runtime:
        return Runtime(
            address=self._addressing.control(route.pod_ip),
            pod_uid=route.pod_uid,
            credential=self._credential(namespace, route.pod_uid),
        )


def host_of(request: web.BaseRequest) -> str:
    """The host that is asked for, without its port. Refuses what two servers could read differently."""
    hosts = request.headers.getall(hdrs.HOST, [])
    if len(hosts) != 1 or not hosts[0].isascii() or not hosts[0].isprintable():
        raise BadRequest("a request has one Host header")
    name, colon, port = hosts[0].lower().rpartition(":")
    if not colon:
        return port
    # The brackets of an IPv6 address hold colons too.
    return name if port.isdigit() else hosts[0].lower()


def _path(request: web.BaseRequest) -> bytes:
    """The bytes of the request line. The program was chosen before and elsewhere: whatever stands here,
    `//host` too, is only ever a path.
    """
    path = request.raw_path
    if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
        raise BadRequest("the request target must be a path")
    return path.encode("ascii")


def _token(key: bytes, uid: str, port: int, version: int) -> str:
    return keys.preview_token(key=key, sandbox_uid=uid, port=port, version=version)


def _credential(key: bytes, namespace: str, pod_uid: str) -> str:
    return keys.credential(key=key, namespace=namespace, pod_uid=pod_uid)
