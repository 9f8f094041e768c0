"""Login links, beside the ports that they are for: whoever may see a sandbox's private ports gets one for
himself, to open them in a browser, which cannot be given a bearer token. A link gives nobody more than the
one who asked for it may do, and dies with that right.
"""

import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web
from sandpod_crds import keys
from sandpod_crds.names import RUN_API_VERSION
from sandpod_crds.previews import PreviewAddress, Site

from . import ports
from .audit import Exchange
from .door import document
from .errors import Conflict, NotAllowed, NotFound
from .identity import Identity
from .login import Kind, Login, Seals
from .private import LOGIN
from .routes import Key, token_version

Json = dict[str, Any]

# Characters of base64; nobody guesses one, and no two are the same.
_NONCE_BYTES: Final = 12


class LoginApi:
    """`read` gets the sandbox as it is now. `site` is None where there are no previews."""

    def __init__(
        self,
        *,
        read: Callable[[Key], Awaitable[Json]],
        key: bytes,
        seals: Seals,
        site: Site | None,
        seconds: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        self._key = key
        self._seals = seals
        self._site = site
        self._seconds = seconds
        self._clock = clock

    async def serve(
        self, request: web.BaseRequest, key: Key, port: int, identity: Identity, exchange: Exchange
    ) -> web.StreamResponse:
        """For somebody who may."""
        if request.method != "POST":
            raise NotAllowed("a login link is asked for by POST")
        if self._site is None:
            raise NotFound("this installation has no previews")
        sandbox = await self._read(key)
        entry = next((each for each in ports.listed(sandbox) if each["port"] == port), None)
        if entry is None:
            raise NotFound(f"port {port} is not exposed")
        if entry["access"] != "Private":
            raise Conflict(f"port {port} has access Token: its URL opens it without a login")
        uid, version = sandbox["metadata"]["uid"], token_version(entry)
        expires = int(self._clock()) + self._seconds
        login = Login(
            sandbox_uid=uid,
            port=port,
            token_version=version,
            identity=identity,
            expires=expires,
            nonce=secrets.token_urlsafe(_NONCE_BYTES),
        )
        code = self._seals.seal(Kind.CODE, login)
        token = keys.preview_token(key=self._key, sandbox_uid=uid, port=port, version=version)
        address = PreviewAddress.of(port=port, sandbox=key[1], token=token)
        exchange.answered = perf_counter()
        return document(
            {
                "kind": "SandboxPortLogin",
                "apiVersion": RUN_API_VERSION,
                "url": f"{self._site.url(address).rstrip('/')}{LOGIN}?{urlencode({'code': code})}",
                "expiresAt": f"{datetime.fromtimestamp(expires, UTC):%Y-%m-%dT%H:%M:%SZ}",
            },
            status=201,
            headers={"Cache-Control": "no-store"},
        )
