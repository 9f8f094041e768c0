"""Ports with `access: Private`: the address alone opens nothing, whoever comes has to be somebody whom RBAC
lets `get sandboxes/ports` of this sandbox. Programs show a bearer token; browsers have a cookie, which they
get for a one-time link.

What RBAC says is asked again with every request, and kept for seconds: a right that is taken away ends
access, however long the cookie would still be good.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs

from aiohttp import hdrs, web

from .audit import Exchange
from .authorization import Authorizer, Question
from .bearer import Tokens, token_in
from .errors import BadRequest, NotAllowed, NotFound, Unauthenticated
from .identity import Identity
from .login import Kind, LinkUsed, Login, Seals
from .origins import ForeignOrigin, is_own
from .pages import LOGGED_OUT, QUIET, show
from .permissions import Permission
from .preview_headers import COOKIE, local_path
from .spent import Spent
from .targets import Target

# Of a private port's paths, the ones that are ours. The program never sees a request below it: a code must
# not reach it, however the path around it is written.
OURS: Final = "/.sandpod"
LOGIN: Final = f"{OURS}/login"
LOGOUT: Final = f"{OURS}/logout"

PERMISSION: Final = Permission("get", "ports")

# What browsers ask of a cookie with this prefix; no Domain, so that no other preview gets it.
_ATTRIBUTES: Final = "Path=/; Secure; HttpOnly; SameSite=Lax"
_FIELDS: Final = 8


class Private:
    def __init__(
        self,
        *,
        seals: Seals,
        tokens: Tokens,
        authorizer: Authorizer,
        spent: Spent,
        login_seconds: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seals = seals
        self._tokens = tokens
        self._authorizer = authorizer
        self._spent = spent
        self._login_seconds = login_seconds
        self._clock = clock

    async def admit(self, request: web.BaseRequest, target: Target, origin: str, exchange: Exchange) -> bool:
        """Returns whether `Authorization` was what counted, and so is not the program's: a page that somebody
        has logged in to may use it for itself.
        """
        login = self._login_in(request, target)
        if login is not None:
            exchange.user = login.identity.user
            if not is_own(request, origin):
                raise ForeignOrigin(
                    "with a login's cookie, this request has to come from a page of the same preview"
                )
            await self._authorize(login.identity, target)
            return False
        identity = await self._tokens.identify(_token(request), source=exchange.source)
        exchange.user = identity.user
        await self._authorize(identity, target)
        return True

    async def answer(
        self, request: web.BaseRequest, target: Target, exchange: Exchange
    ) -> web.StreamResponse | None:
        """To what is ours; None to what is the program's."""
        path, _, query = request.raw_path.partition("?")
        if path != OURS and not path.startswith(f"{OURS}/"):
            return None
        if path not in (LOGIN, LOGOUT):
            raise NotFound("there is nothing at this path")
        if request.method != hdrs.METH_GET:
            # HEAD too: whatever looks at links before people do must not use them up.
            raise NotAllowed(f"{request.method} is not for this path")
        if path == LOGOUT:
            response = show(LOGGED_OUT, request)
            response.headers[hdrs.SET_COOKIE] = f"{COOKIE}=; Max-Age=0; {_ATTRIBUTES}"
            return response
        return await self._exchange(query, target, exchange)

    async def _exchange(self, query: str, target: Target, exchange: Exchange) -> web.Response:
        code, path = _fields(query)
        login = self._seals.open(Kind.CODE, code, now=self._clock())
        if login is None or not login.opens(target):
            raise LinkUsed("this login link is not valid here any more")
        exchange.user = login.identity.user
        await self._authorize(login.identity, target)
        if not await self._spent.spend(
            target.key, sandbox_uid=login.sandbox_uid, nonce=login.nonce, expires=login.expires
        ):
            raise LinkUsed("this login link was used before")
        until = int(self._clock()) + self._login_seconds
        cookie = self._seals.seal(Kind.COOKIE, replace(login, expires=until, nonce=""))
        headers = {
            **QUIET,
            # Never the code, nor anything else of the query: only ever a path on this host.
            hdrs.LOCATION: local_path(path),
            hdrs.SET_COOKIE: f"{COOKIE}={cookie}; Max-Age={self._login_seconds}; {_ATTRIBUTES}",
        }
        return web.Response(status=303, headers=headers)

    async def _authorize(self, identity: Identity, target: Target) -> None:
        namespace, name = target.key
        await self._authorizer.check(
            Question(identity=identity, permission=PERMISSION, namespace=namespace, name=name)
        )

    def _login_in(self, request: web.BaseRequest, target: Target) -> Login | None:
        for header in request.headers.getall(hdrs.COOKIE, []):
            for pair in header.split(";"):
                name, _, value = pair.partition("=")
                if name.strip() == COOKIE:
                    login = self._seals.open(Kind.COOKIE, value.strip(), now=self._clock())
                    if login is not None and login.opens(target):
                        return login
        return None


def _token(request: web.BaseRequest) -> str:
    values = request.headers.getall(hdrs.AUTHORIZATION, [])
    if not values:
        raise Unauthenticated("this port is private")
    if len(values) > 1:
        raise BadRequest("a request has one Authorization header")
    return token_in(values[0])


def _fields(query: str) -> tuple[str, str]:
    """The code, and the path to go on to."""
    try:
        fields = parse_qs(query, max_num_fields=_FIELDS)
    except ValueError:
        return "", "/"
    return fields.get("code", [""])[0], fields.get("next", ["/"])[0]
