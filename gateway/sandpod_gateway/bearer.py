"""Who a bearer token belongs to: the API server says so (TokenReview), and is asked once in a few seconds for
each token. Tokens are kept as their SHA-256 only. Who guesses is held up, by address, before it is asked.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, cast

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Unavailable
from sandpod_crds.kube import Kube

from .errors import TooMany, Unauthenticated, Unchecked
from .identity import Identity
from .rates import Buckets, network_of, seconds

Json = dict[str, Any]

log = logging.getLogger(__name__)

# Kept of each kind; those who are refused must not push out those who are let in.
SIZE: Final = 4096
TIMEOUT: Final = 5.0
# RFC 6750. What else a header may hold is no token, and not worth a question.
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_HOW: Final = (
    "send `Authorization: Bearer TOKEN` with a token of this cluster, as `kubectl create token` makes them"
)


def token_in(header: str | None) -> str:
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    if not token or scheme.lower() != "bearer":
        raise Unauthenticated(f"this needs a bearer token: {_HOW}")
    if not _TOKEN.fullmatch(token):
        raise Unauthenticated("what stands in Authorization is not a bearer token")
    return token


class Tokens:
    def __init__(
        self,
        *,
        kube: Kube,
        cache_seconds: float,
        failures: Buckets,
        count: Callable[..., None],
        size: int = SIZE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`failures` are the refused tokens that each address may still send. `count` is told of each answer
        of the API server.
        """
        self._kube = kube
        self._cache_seconds = cache_seconds
        self._failures = failures
        self._count = count
        self._size = size
        self._clock = clock
        # Kept beyond their time: a token that was good may be asked about again whatever its address did, or
        # one who guesses could shut out everybody behind the same proxy.
        self._good: OrderedDict[bytes, tuple[float, Identity]] = OrderedDict()
        self._bad: OrderedDict[bytes, float] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[Identity | None]] = {}

    async def identify(self, token: str, *, source: str) -> Identity:
        digest = hashlib.sha256(token.encode()).digest()
        known = self._good.get(digest)
        if known is not None and known[0] > self._clock():
            return known[1]
        address = network_of(source)
        # Taken before the question, or a thousand guesses at once would all be asked about.
        wait = self._failures.take(address)
        if wait and known is None:
            raise TooMany(
                "too many tokens from this address were refused: try again later", retry_after=seconds(wait)
            )
        identity = None if self._is_bad(digest) else await self._ask_once(digest, token)
        if identity is None:
            raise Unauthenticated(f"the API server does not know this token, or it has expired: {_HOW}")
        if not wait:
            self._failures.give_back(address)
        return identity

    def _is_bad(self, digest: bytes) -> bool:
        return self._bad.get(digest, 0.0) > self._clock()

    async def _ask_once(self, digest: bytes, token: str) -> Identity | None:
        task = self._asking.get(digest)
        if task is None:
            task = self._asking[digest] = asyncio.create_task(self._ask(digest, token))
            task.add_done_callback(lambda done: self._asked(digest, done))
        # Shielded: the one who asked first may hang up, the others still want the answer.
        try:
            return await asyncio.shield(task)
        except ApiError as error:
            log.warning("asking whose token it is: %s", error)
            raise Unchecked("the token could not be checked: the API server did not answer") from error

    def _asked(self, digest: bytes, task: asyncio.Task[Identity | None]) -> None:
        del self._asking[digest]
        if not task.cancelled():
            # Looked at, or asyncio complains about an error that nobody was left to hear.
            task.exception()

    async def _ask(self, digest: bytes, token: str) -> Identity | None:
        try:
            answer = await self._review(token)
        except Unavailable as error:
            if error.reason != "ConnectionFailed":
                raise
            # A kept connection that the API server has just closed looks like this; asking twice is harmless.
            answer = await self._review(token)
        identity = identity_of(answer)
        self._count(result="unknown" if identity is None else "known")
        until = self._clock() + self._cache_seconds
        if identity is None:
            self._good.pop(digest, None)
            _keep(self._bad, digest, until, size=self._size)
        else:
            _keep(self._good, digest, (until, identity), size=self._size)
        return identity

    async def _review(self, token: str) -> Json:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            # No audiences: the API server's own, so that a token for another service opens nothing here.
            "spec": {"token": token},
        }
        return await self._kube.request("POST", paths.token_reviews(), body=body, timeout=TIMEOUT)


def identity_of(review: Json) -> Identity | None:
    """None: nobody's."""
    status: Json = review.get("status") or {}
    user: Json = status.get("user") or {}
    name = str(user.get("username") or "")
    if status.get("authenticated") is not True or not name:
        return None
    extra = cast("dict[str, list[str]]", user.get("extra") or {})
    return Identity(
        user=name,
        uid=str(user.get("uid") or ""),
        groups=tuple(user.get("groups") or ()),
        extra=tuple((key, tuple(values)) for key, values in sorted(extra.items())),
    )


def _keep(table: OrderedDict[bytes, Any], digest: bytes, value: Any, *, size: int) -> None:
    table[digest] = value
    table.move_to_end(digest)
    while len(table) > size:
        table.popitem(last=False)
