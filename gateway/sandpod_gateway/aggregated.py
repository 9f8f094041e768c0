"""Door one, the Kubernetes API itself: the gateway as an aggregated API server. The API server has
authenticated the caller and checked `sandboxes/proxy`; who the caller is comes in its front proxy's headers.
"""

import re
import ssl
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web
from sandpod_crds.names import RUN_API_VERSION, RUN_GROUP, SANDBOXES

from . import discovery
from .audit import Exchange
from .credentials import Credentials
from .door import document
from .errors import BadRequest, NotAllowed, NotFound
from .frontproxy import identify
from .health import Health
from .identity import Identity
from .rates import Rates
from .sandbox_api import Call
from .subresources import SANDBOX, Subresources, target_of

NAME: Final = "aggregated"

_SANDBOX: Final = re.compile(rf"/apis/{re.escape(RUN_API_VERSION)}/{SANDBOX}")
_GROUP_PATH: Final = f"/apis/{RUN_GROUP}"
_VERSION_PATH: Final = f"/apis/{RUN_API_VERSION}"


class AggregatedApi:
    def __init__(
        self,
        *,
        subresources: Subresources,
        health: Health,
        credentials: Credentials,
        rates: Rates,
        draining: Callable[[], bool],
    ) -> None:
        self._subresources = subresources
        self._health = health
        self._credentials = credentials
        self._rates = rates
        self._draining = draining

    async def serve(self, request: web.BaseRequest, exchange: Exchange) -> web.StreamResponse:
        path, mark, query = request.raw_path.partition("?")
        if not path.startswith("/"):
            # `GET http://elsewhere/` and `CONNECT elsewhere:443` are for proxies that go where they are sent.
            raise BadRequest("the request target must be a path")
        if (answer := self._health.answer(path)) is not None:
            return answer
        # A connection from before the CA changed may belong to somebody whom it vouches for no more.
        exchange.keep_alive = not self._draining() and self._credentials.tls.is_current(_tls_of(request))
        identity = self._identify(request)
        exchange.user = identity.user
        _follow(request, exchange)
        if (found := _SANDBOX.fullmatch(path)) is None:
            return _discover(request, path)
        if found["rest"] == "/log":
            raise NotFound(
                "the log of a sandbox's pod is not here: `kubectl logs` has it, and "
                "`GET proxy/api/process/ID/logs` that of a process in the sandbox"
            )
        # Not for discovery, which is the API server's own wish.
        self._rates.admit_source(exchange.source)
        exchange.namespace, exchange.sandbox = found["namespace"], found["name"]
        self._rates.admit_user(identity.user)
        call = Call(
            identity=identity,
            namespace=found["namespace"],
            name=found["name"],
            target=target_of(found["rest"], mark + query),
            identity_headers=self._credentials.trust.header_prefixes(),
        )
        return await self._subresources.serve(request, call, found["rest"], exchange)

    def _identify(self, request: web.BaseRequest) -> Identity:
        transport = request.transport
        certificate: dict[str, Any] | None = transport.get_extra_info("peercert") if transport else None
        return identify(request.headers, certificate=certificate, trust=self._credentials.trust)


def _discover(request: web.BaseRequest, path: str) -> web.Response:
    documents = {_GROUP_PATH: discovery.GROUP, _VERSION_PATH: discovery.RESOURCES}
    if path in documents or path == "/apis":
        if request.method not in ("GET", "HEAD"):
            raise NotAllowed("discovery documents are read-only")
        if path in documents:
            return document(documents[path])
        if discovery.wants_aggregated(request.headers.get("Accept", "")):
            return _aggregated(request)
    raise NotFound(
        f"there is nothing at this path: sandboxes are reached at {_VERSION_PATH}/namespaces/NAMESPACE/"
        f"{SANDBOXES}/NAME/proxy/…"
    )


def _aggregated(request: web.BaseRequest) -> web.Response:
    headers = {"ETag": discovery.AGGREGATED_ETAG, "Vary": "Accept", "Cache-Control": "public"}
    if request.headers.get("If-None-Match") == discovery.AGGREGATED_ETAG:
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = discovery.AGGREGATED_TYPE
    return web.Response(body=discovery.AGGREGATED, headers=headers)


def _follow(request: web.BaseRequest, exchange: Exchange) -> None:
    """What the API server knows of the request, once it is certain that the API server is who says it."""
    # It appends the address that it saw itself; what stands before that is the client's claim.
    if source := request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip():
        exchange.source = source
    exchange.audit_id = request.headers.get("Audit-Id", "")[:64]


def _tls_of(request: web.BaseRequest) -> ssl.SSLObject | None:
    return request.transport.get_extra_info("ssl_object") if request.transport else None
