"""The room behind the doors that lead to a sandbox's own API: may this person do this here, where is the pod,
pass it on. The order matters: nothing is looked up for somebody who may not ask.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from aiohttp import web
from sandpod_crds import keys

from .addresses import Address, control_address
from .audit import Exchange
from .authorization import Authorizer, Question
from .errors import BadRequest, NotAllowed
from .identity import Identity
from .permissions import permission_for
from .proxy import Order, Proxy
from .resolver import Resolver
from .tunnel import wants_tunnel

_CREDENTIALS: Final = 4096
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
        address_of: Callable[[str], Address] = control_address,
    ) -> None:
        self._authorizer = authorizer
        self._resolver = resolver
        self._proxy = proxy

        def credential(namespace: str, pod_uid: str) -> str:
            return keys.credential(key=key, namespace=namespace, pod_uid=pod_uid)

        # Kept, because deriving it costs more than anything else that is done for a request here.
        self._credential = lru_cache(maxsize=_CREDENTIALS)(credential)
        self._address_of = address_of

    async def serve(self, request: web.BaseRequest, call: Call, exchange: Exchange) -> web.StreamResponse:
        exchange.user, exchange.namespace, exchange.sandbox = call.identity.user, call.namespace, call.name
        if request.method not in _METHODS:
            raise NotAllowed(f"the method {request.method} is not passed on to sandboxes")
        target = _target(call.target)
        upgrade = wants_tunnel(request)
        permission = permission_for(
            method=request.method, path=call.target.partition("?")[0], upgrade=upgrade
        )
        exchange.verb, exchange.subresource = permission.verb, permission.subresource
        await self._authorizer.check(
            Question(identity=call.identity, permission=permission, namespace=call.namespace, name=call.name)
        )
        route = await self._resolver.ready_route(namespace=call.namespace, name=call.name)
        order = Order(
            address=self._address_of(route.pod_ip),
            target=target,
            # The request's namespace, which is what the user was authorized for: no status can name another.
            credential=self._credential(call.namespace, route.pod_uid),
            identity_headers=call.identity_headers,
            upgrade=upgrade,
        )
        return await self._proxy.forward(request, order, exchange)


def _target(text: str) -> bytes:
    """The bytes of the request line's target. The upstream is chosen before and elsewhere: whatever stands
    here, `//host` too, is only ever a path.
    """
    if not text.startswith("/") or not text.isascii() or not text.isprintable() or "#" in text:
        raise BadRequest("the path holds characters that a URL must percent-encode")
    return text.encode("ascii")
