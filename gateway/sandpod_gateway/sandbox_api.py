"""The room behind the doors that lead to a sandbox's own API: may this person do this here, where is the pod,
pass it on. The order matters: nothing is looked up, and nothing woken, for somebody who may not ask.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from aiohttp import web
from sandpod_crds.names import CREDENTIAL_HEADER, Phase

from . import headers
from .addresses import host_header
from .audit import Exchange
from .authorization import Authorizer, Question
from .door import document, success
from .errors import NotAllowed, NotReady, PodLeaving
from .identity import Identity
from .metrics import Metrics
from .permissions import Permission, permission_for
from .proxy import Order, Proxy, Runtime, request_target
from .rates import Places
from .resolver import Resolver, why_not
from .runtimes import Runtimes
from .tunnel import wants_tunnel
from .upload import Body
from .waiting import Patience

# The API server gives up after 60 s on everything but `proxy` and its like.
_LONGEST_WAKE: Final = 50.0
# Answered while nobody may do anything else yet.
_SETUP_LOG: Final = "/api/setup/log"
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


@dataclass(frozen=True, slots=True)
class Call:
    """What a door has found out about a request. `target` is what follows `proxy`: the runtime's path and
    query, as they came.
    """

    identity: Identity
    namespace: str
    name: str
    target: str
    identity_headers: Iterable[str] = ()


class SandboxApi:
    """`tenants` are the requests under way to the sandboxes of each namespace."""

    def __init__(
        self,
        *,
        authorizer: Authorizer,
        resolver: Resolver,
        proxy: Proxy,
        runtimes: Runtimes,
        metrics: Metrics,
        tenants: Places,
    ) -> None:
        self._authorizer = authorizer
        self._resolver = resolver
        self._proxy = proxy
        self._runtimes = runtimes
        self._metrics = metrics
        self._tenants = tenants

    async def serve(self, request: web.BaseRequest, call: Call, exchange: Exchange) -> web.StreamResponse:
        _note(call, exchange)
        if request.method not in _METHODS:
            raise NotAllowed(f"the method {request.method} is not passed on to sandboxes")
        target, upgrade = request_target(call.target), wants_tunnel(request)
        path = call.target.partition("?")[0]
        permission = permission_for(method=request.method, path=path, upgrade=upgrade)
        await self.authorize(call, permission, exchange)
        body, patience = Body(request), Patience()
        while True:
            route = await self._resolver.ready_route(
                namespace=call.namespace,
                name=call.name,
                patience=patience,
                exchange=exchange,
                in_setup=request.method == "GET" and path == _SETUP_LOG,
            )
            runtime = self._runtimes.at(call.namespace, route)
            lines = runtime_lines(request, call, runtime, exchange)
            order = Order(runtime=runtime, target=target, lines=lines, upgrade=upgrade)
            try:
                with self._tenants.enter(call.namespace):
                    return await self._proxy.forward(body, order, exchange)
            except PodLeaving as leaving:
                self._resolver.did_not_take_it(route, leaving, patience)
                if not body.resendable:
                    raise
                exchange.resent += 1
                self._metrics.count("resent_total")

    async def wake(self, request: web.BaseRequest, call: Call, exchange: Exchange) -> web.StreamResponse:
        """Answers when the sandbox takes requests."""
        _note(call, exchange)
        if request.method != "POST":
            raise NotAllowed("a wake is asked for by POST")
        await self.authorize(call, Permission("create", "wake"), exchange)
        patience = Patience()
        while True:
            route = await self._resolver.ready_route(
                namespace=call.namespace,
                name=call.name,
                patience=patience,
                exchange=exchange,
                longest=_LONGEST_WAKE,
            )
            try:
                await self._proxy.keep_awake(self._runtimes.at(call.namespace, route))
            except PodLeaving as leaving:
                self._resolver.did_not_take_it(route, leaving, patience)
                continue
            exchange.answered = perf_counter()
            return document(success(f'sandbox "{call.name}" is awake'))

    async def sleep(self, request: web.BaseRequest, call: Call, exchange: Exchange) -> web.StreamResponse:
        """Answers when the sandbox takes no more requests, or sleeps already."""
        _note(call, exchange)
        if request.method != "POST":
            raise NotAllowed("a sleep is asked for by POST")
        await self.authorize(call, Permission("create", "sleep"), exchange)
        route = await self._resolver.current(namespace=call.namespace, name=call.name)
        if route.phase == Phase.ASLEEP and not route.wake_pending:
            return document(success(f'sandbox "{call.name}" is asleep'))
        if route.ready:
            try:
                await self._proxy.put_to_sleep(self._runtimes.at(call.namespace, route))
            except PodLeaving as leaving:
                # One that was told before may have gone by now.
                if not (leaving.certain or self._resolver.is_leaving(route)):
                    raise
            self._resolver.leaves(route)
        elif route.phase != Phase.DRAINING:
            raise NotReady(why_not(call.name, route), name=call.name)
        exchange.answered = perf_counter()
        # Accepted: what runs in it is being ended, and soon it sleeps.
        return document(success(f'sandbox "{call.name}" is going to sleep', code=202), status=202)

    async def authorize(self, call: Call, permission: Permission, exchange: Exchange) -> None:
        """Returns when this caller may."""
        _note(call, exchange)
        exchange.verb, exchange.subresource = permission.verb, permission.subresource
        await self._authorizer.check(
            Question(identity=call.identity, permission=permission, namespace=call.namespace, name=call.name)
        )


def _note(call: Call, exchange: Exchange) -> None:
    exchange.user, exchange.namespace, exchange.sandbox = call.identity.user, call.namespace, call.name


def runtime_lines(request: web.BaseRequest, call: Call, runtime: Runtime, exchange: Exchange) -> list[bytes]:
    return [
        b"Host: " + host_header(runtime.address) + b"\r\n",
        *headers.to_runtime(request.raw_headers, identity_headers=call.identity_headers),
        b"traceparent: " + exchange.traceparent.encode() + b"\r\n",
        # The client's own ones are gone: there is exactly one.
        f"{CREDENTIAL_HEADER}: {runtime.credential}\r\n".encode(),
    ]
