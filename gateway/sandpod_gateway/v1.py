"""Door two, the gateway's own address: for programs with a bearer token and no kubeconfig. Sandboxes
themselves are the API server's business, asked with the caller's token; what is behind a sandbox's name is
the same room as behind door one.
"""

import re
from collections.abc import Callable
from typing import Final

from aiohttp import hdrs, web
from sandpod_crds.names import SANDBOXES

from .audit import Exchange
from .bearer import Tokens, token_in
from .errors import BadRequest, NotFound
from .objects import Asked, Objects
from .rates import Rates
from .sandbox_api import Call
from .subresources import NAME as SANDBOX_NAME
from .subresources import NAMESPACE, SANDBOX, Subresources, target_of

NAME: Final = "v1"

_OBJECTS: Final = re.compile(rf"/v1/namespaces/{NAMESPACE}/{SANDBOXES}(?:/{SANDBOX_NAME})?")
_SANDBOX: Final = re.compile(rf"/v1/{SANDBOX}")
_IMPERSONATE: Final = "impersonate-"


class V1Api:
    def __init__(
        self,
        *,
        subresources: Subresources,
        objects: Objects,
        tokens: Tokens,
        rates: Rates,
        draining: Callable[[], bool],
    ) -> None:
        self._subresources = subresources
        self._objects = objects
        self._tokens = tokens
        self._rates = rates
        self._draining = draining

    async def serve(self, request: web.BaseRequest, exchange: Exchange) -> web.StreamResponse:
        exchange.door = NAME
        exchange.keep_alive = not self._draining()
        path, mark, query = request.raw_path.partition("?")
        if not path.startswith("/"):
            # `GET http://elsewhere/` and `CONNECT elsewhere:443` are for proxies that go where they are sent.
            raise BadRequest("the request target must be a path")
        self._rates.admit_source(exchange.source)
        objects, sandbox = _OBJECTS.fullmatch(path), _SANDBOX.fullmatch(path)
        found = objects or sandbox
        if found is None:
            raise NotFound(
                f"there is nothing at this path: sandboxes are at /v1/namespaces/NAMESPACE/{SANDBOXES} and "
                f"/v1/namespaces/NAMESPACE/{SANDBOXES}/NAME/proxy/…"
            )
        token = _token(request)
        identity = await self._tokens.identify(token, source=exchange.source)
        # Only now: what nobody has asked, nobody can be called to account for, and there may be much of it.
        exchange.user = identity.user
        exchange.namespace, exchange.sandbox = found["namespace"], found["name"] or ""
        self._rates.admit_user(identity.user)
        asked = Asked(namespace=found["namespace"], name=found["name"] or "", query=query, token=token)
        if sandbox is None:
            return await self._objects.serve(request, asked, exchange)
        if sandbox["rest"] == "/log":
            return await self._objects.log(request, asked, exchange)
        call = Call(
            identity=identity,
            namespace=found["namespace"],
            name=found["name"],
            target=target_of(sandbox["rest"], mark + query),
        )
        return await self._subresources.serve(request, call, sandbox["rest"], exchange)


def _token(request: web.BaseRequest) -> str:
    headers = request.headers
    if any(name.lower().startswith(_IMPERSONATE) for name in headers):
        # Not passed over in silence: somebody wants to have fewer rights than they have.
        raise BadRequest("nobody can be impersonated here: use the API server's address for that")
    values = headers.getall(hdrs.AUTHORIZATION, [])
    if len(values) > 1:
        raise BadRequest("a request has one Authorization header")
    return token_in(values[0] if values else None)
