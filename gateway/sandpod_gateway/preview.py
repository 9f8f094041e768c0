"""Previews: from a host name to a program in a sandbox. The token is checked before anything is looked up
that costs, and before anything is woken; what it opens is one port of one sandbox and nothing else.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Final

from aiohttp import hdrs, web

from . import pages, preview_headers
from .activity import Activity
from .addresses import Address
from .audit import Exchange
from .errors import BadRequest, NobodyListens, NotAllowed, NotReady, PodLeaving, Refusal
from .fastpath.path import FastPath
from .listening import Listening
from .metrics import Metrics
from .origins import origin_of
from .private import Private
from .proxy import Order, Proxy, request_target
from .rates import Places
from .resolver import Resolver
from .runtimes import Runtimes
from .targets import Target, Targets
from .tunnel import wants_tunnel
from .upload import Body
from .waiting import Patience

# People look at a page that tries again by itself rather than at nothing. Programs have no such page, nor has
# a form.
_LONGEST_FOR_PEOPLE: Final = 5.0
_NOT_PASSED_ON: Final = frozenset(("CONNECT", "TRACE"))
# A name or an address, and a port. What is written in another way, two servers could read differently.
_HOST: Final = re.compile(r"(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class Previews:
    """`app_address` turns a pod's IP and a port into what is connected to."""

    def __init__(
        self,
        *,
        targets: Targets,
        private: Private,
        resolver: Resolver,
        proxy: Proxy,
        activity: Activity,
        listening: Listening,
        runtimes: Runtimes,
        app_address: Callable[[str, int], Address],
        port_wait_seconds: float,
        tenants: Places,
        metrics: Metrics,
        fast: FastPath | None = None,
    ) -> None:
        self._targets = targets
        self._private = private
        self._resolver = resolver
        self._proxy = proxy
        self._activity = activity
        self._listening = listening
        self._runtimes = runtimes
        self._app_address = app_address
        self._port_wait = port_wait_seconds
        self._tenants = tenants
        self._metrics = metrics
        self._fast = fast

    async def serve(
        self, request: web.BaseRequest, host: str, exchange: Exchange, *, scheme: str
    ) -> web.StreamResponse:
        """`host` without its port; `scheme` as the client sees it."""
        try:
            return await self._serve(request, host, exchange, scheme=scheme)
        except Refusal as refusal:
            exchange.refused(refusal)
            return pages.show(pages.page_of(refusal), request)

    async def _serve(
        self, request: web.BaseRequest, host: str, exchange: Exchange, *, scheme: str
    ) -> web.StreamResponse:
        target = self._targets.find(host)
        exchange.namespace, exchange.sandbox = target.key
        exchange.verb, exchange.subresource = "preview", f"ports/{target.port.port}"
        if not request.raw_path.startswith("/"):
            # The absolute form has the host in it, and so the token, which no log is to hold.
            exchange.path = ""
        if request.method in _NOT_PASSED_ON:
            raise NotAllowed(f"the method {request.method} is not passed on to sandboxes")
        path, upgrade = request_target(request.raw_path), wants_tunnel(request)
        if (
            target.port.private
            and (ours := await self._private.answer(request, target, exchange)) is not None
        ):
            return ours
        origin = origin_of(scheme=scheme, host=request.headers[hdrs.HOST])
        await self._admit(request, target, origin, exchange)
        body, patience = Body(request), Patience()
        while True:
            route = await self._resolver.ready_route(
                namespace=target.key[0],
                name=target.key[1],
                patience=patience,
                exchange=exchange,
                longest=self._longest(request),
            )
            # While the request waited the port may have been taken back or made private, or whoever asks may
            # have lost the right.
            target = self._targets.find(host)
            for_us = await self._admit(request, target, origin, exchange)
            if route.uid != target.route.uid:
                raise NotReady("the sandbox has just been made anew")
            runtime = self._runtimes.at(target.key[0], route)
            address = self._app_address(route.pod_ip, target.port.port)
            order = Order(
                runtime=runtime,
                target=path,
                lines=preview_headers.to_app(
                    request.raw_headers,
                    host=request.headers[hdrs.HOST].encode(),
                    source=exchange.source,
                    scheme=scheme,
                    traceparent=exchange.traceparent,
                    credentials_are_ours=for_us,
                ),
                upgrade=upgrade,
                app=address,
                to_client=preview_headers.to_browser,
            )
            watched = self._activity.of(
                runtime,
                exchange,
                may_go_on=partial(self._targets.still_opens, host, target),
                cut=partial(_cut, request),
            )
            try:
                with self._tenants.enter(target.key[0]), watched:
                    answer = await self._forward(body, order, address, exchange, target, patience)
            except PodLeaving as leaving:
                self._resolver.did_not_take_it(route, leaving, patience)
                if not body.resendable:
                    raise
                exchange.resent += 1
                self._metrics.count("resent_total")
                continue
            if answer is None:
                continue
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

    async def _admit(self, request: web.BaseRequest, target: Target, origin: str, exchange: Exchange) -> bool:
        """Whether `Authorization` was meant for us."""
        return target.port.private and await self._private.admit(request, target, origin, exchange)

    async def _forward(
        self,
        body: Body,
        order: Order,
        address: Address,
        exchange: Exchange,
        target: Target,
        patience: Patience,
    ) -> web.StreamResponse | None:
        """None when a program that has yet to start was waited for: now it may be there. One that has
        listened before and has ended is not waited for.
        """
        # As of now: it may begin to listen, and answer somebody else, before we hear that it did not.
        has_ended = self._listening.has_been_seen(order.runtime.pod_uid, target.port.port)
        try:
            return await self._proxy.forward(body, order, exchange)
        except NobodyListens:
            left = patience.left(min(self._port_wait, self._longest(body.request)))
            if left <= 0 or has_ended:
                raise
            with self._resolver.standing(target.key):
                await self._listening.wait(address, seconds=left)
            return None
        finally:
            if exchange.status:
                self._listening.saw(order.runtime.pod_uid, target.port.port)

    def _longest(self, request: web.BaseRequest) -> float:
        return _LONGEST_FOR_PEOPLE if pages.may_try_again(request) else math.inf


def host_of(request: web.BaseRequest) -> str:
    """The host that is asked for, without its port and without the dot that a full name may end with. Refuses
    what two servers could read differently.
    """
    hosts = request.headers.getall(hdrs.HOST, [])
    found = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
    if found is None:
        raise BadRequest("a request has one Host header, with a name or an address and perhaps a port")
    return found["name"].removesuffix(".")


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
