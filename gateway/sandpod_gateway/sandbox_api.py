"""The room behind the doors that lead to a sandbox's own API: may this person do this here, where is the pod,
pass it on. The order matters: nothing is looked up, and nothing woken, for somebody who may not ask.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Final

from aiohttp import web
from sandpod_crds import keys

from .addresses import Address, control_address
from .audit import Exchange
from .authorization import Authorizer, Question
from .door import document
from .errors import BadRequest, NotAllowed, PodLeaving
from .identity import Identity
from .metrics import Metrics
from .permissions import Permission, permission_for
from .proxy import Order, Proxy
from .resolver import Resolver
from .routes import Route
from .tunnel import wants_tunnel
from .upload import Body
from .waiting import Patience

_CREDENTIALS: Final = 4096
# The API server gives up after 60 s on everything but `proxy` and its like.
_LONGEST_WAKE: Final = 50.0
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
    """`address_of` turns the watched pod's IP into what is connected to."""

    def __init__(
        self,
        *,
        authorizer: Authorizer,
        resolver: Resolver,
        proxy: Proxy,
        key: bytes,
        metrics: Metrics,
        address_of: Callable[[str], Address] = control_address,
    ) -> None:
        self._authorizer = authorizer
        self._resolver = resolver
        self._proxy = proxy
        self._metrics = metrics

        def credential(namespace: str, pod_uid: str) -> str:
            return keys.credential(key=key, namespace=namespace, pod_uid=pod_uid)

        # Kept, because deriving it costs more than anything else that is done for a request here.
        self._credential = lru_cache(maxsize=_CREDENTIALS)(credential)
        self._address_of = address_of

    async def serve(self, request: web.BaseRequest, call: Call, exchange: Exchange) -> web.StreamResponse:
        _note(call, exchange)
        if request.method not in _METHODS:
            raise NotAllowed(f"the method {request.method} is not passed on to sandboxes")
        target, upgrade = _target(call.target), wants_tunnel(request)
        permission = permission_for(
            method=request.method, path=call.target.partition("?")[0], upgrade=upgrade
        )
        await self._authorize(call, permission, exchange)
        body, patience = Body(request), Patience()
        while True:
            route = await self._resolver.ready_route(
                namespace=call.namespace, name=call.name, patience=patience, exchange=exchange
            )
            order = self._order(call, route, target=target, upgrade=upgrade)
            try:
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
        await self._authorize(call, Permission("create", "wake"), exchange)
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
                await self._proxy.keep_awake(self._order(call, route, target=b"", upgrade=False))
            except PodLeaving as leaving:
                self._resolver.did_not_take_it(route, leaving, patience)
                continue
            exchange.answered = perf_counter()
            return document(
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "message": f'sandbox "{call.name}" is awake',
                    "code": 200,
                }
            )

    async def _authorize(self, call: Call, permission: Permission, exchange: Exchange) -> None:
        exchange.verb, exchange.subresource = permission.verb, permission.subresource
        await self._authorizer.check(
            Question(identity=call.identity, permission=permission, namespace=call.namespace, name=call.name)
        )

    def _order(self, call: Call, route: Route, *, target: bytes, upgrade: bool) -> Order:
        return Order(
            address=self._address_of(route.pod_ip),
            pod_uid=route.pod_uid,
            target=target,
            # The request's namespace, which is what the user was authorized for: no status can name another.
            credential=self._credential(call.namespace, route.pod_uid),
            identity_headers=call.identity_headers,
            upgrade=upgrade,
        )


def _note(call: Call, exchange: Exchange) -> None:
    exchange.user, exchange.namespace, exchange.sandbox = call.identity.user, call.namespace, call.name


def _target(text: str) -> bytes:
    """The bytes of the request line's target. The upstream is chosen before and elsewhere: whatever stands
    here, `//host` too, is only ever a path.
    """
    if not text.startswith("/") or not text.isascii() or not text.isprintable() or "#" in text:
        raise BadRequest("the path holds characters that a URL must percent-encode")
    return text.encode("ascii")
