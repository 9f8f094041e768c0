"""aiohttp's low-level server with what a door needs beside it: a bound on connections, and request targets
that are taken as bytes. No routes and no application: each door reads the raw path itself.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from sandpod_crds.keepalive import watch_over

from .connection import Connection, request_of
from .forwarded import Network, is_among
from .rates import network_of

# A name in many groups comes with a header for each of them; a group's name may be a long one.
MAX_HEADERS: Final = 1024
MAX_LINE: Final = 16 * 1024
# All of a head: what the API server takes itself.
MAX_HEAD: Final = 1024 * 1024
# … and what HAProxy takes, on ports for everybody.
MAX_OPEN_HEAD: Final = 32 * 1024
# Longer than Go's 90 s, so that it is the API server that closes an idle connection and never meets a closing
# one. Also what a connection of the API server's gets that never sends a whole request.
KEEPALIVE_SECONDS: Final = 120.0
HANDSHAKE_SECONDS: Final = 10.0
# How long a body is still read whose request has been answered already: closing at once would lose the
# answer.
LINGER_SECONDS: Final = 5.0
BACKLOG: Final = 1024

# Whoever shows no client certificate is told so at once, or asks for our health: a few seconds are plenty.
# Counted apart, or anybody in the cluster could take all the places of the API server's connections.
STRANGER_SECONDS: Final = 5.0
STRANGERS: Final = 64

# aiohttp logs each malformed request with a traceback. They are answered 400, and anybody can send as many as
# they like; what goes wrong behind the parser is logged by the door.
_parser_log = logging.getLogger(f"{__name__}.parser")
_parser_log.setLevel(logging.CRITICAL)


class Listener(web.Server):
    """One listening port. With TLS, `max_connections` are those with a verified client certificate; without,
    all of them. On a port that is open to everybody, a source has `per_source` of them, but for `trusted`
    networks, whose proxies bring everybody's.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        max_connections: int,
        per_source: int | None = None,
        trusted: Sequence[Network] = (),
    ) -> None:
        super().__init__(
            handler,
            request_factory=request_of,
            # A client that hangs up ends its request, and with it the runtime's command.
            handler_cancellation=True,
            access_log=None,
            logger=_parser_log,
            auto_decompress=False,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
            max_headers=MAX_HEADERS,
        )
        self._max_connections = max_connections
        self._max_head = MAX_HEAD if per_source is None else MAX_OPEN_HEAD
        self._per_source = per_source
        self._trusted = trusted
        self._sources: Counter[str] = Counter()
        self._source_of: dict[RequestHandler, str] = {}
        self._socket: asyncio.Server | None = None
        # When each of them has had its time
        self._strangers: dict[RequestHandler, asyncio.TimerHandle] = {}
        self.open = 0
        # The one it listens on, also when it was told to find one
        self.port = 0

    def __call__(self) -> RequestHandler:
        return Connection(self, max_head=self._max_head, loop=self._loop, **self._kwargs)

    async def listen(self, *, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._socket = await asyncio.get_running_loop().create_server(
            self,
            None,
            port,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else HANDSHAKE_SECONDS,
            backlog=BACKLOG,
        )
        for listening in self._socket.sockets:
            # A replica of the API server may die with its node. No TCP_USER_TIMEOUT, which the pool has: it
            # would also cut off a client that reads slowly.
            watch_over(listening)
        # Where any port would do, each family has got one of its own, in an order that is another each time.
        found = sorted(self._socket.sockets, key=lambda each: each.family != socket.AF_INET)
        self.port = found[0].getsockname()[1]

    async def listen_at(self, path: str) -> None:
        """On a Unix socket, where only those come who may enter its folder."""
        self._socket = await asyncio.get_running_loop().create_unix_server(self, path, backlog=BACKLOG)

    def stop_accepting(self) -> None:
        """Connections that are open go on; those with nothing under way are closed."""
        if self._socket is not None:
            self._socket.close()
        self.pre_shutdown()

    async def close(self) -> None:
        self.stop_accepting()
        # What is under way has had its time.
        await self.shutdown(timeout=0.1)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self.open += 1
        if _is_stranger(transport):
            # In all, not for each request: one that drips byte by byte, or asks again and again, ends too.
            timer = asyncio.get_running_loop().call_later(STRANGER_SECONDS, transport.abort)
            self._strangers[handler] = timer
            if len(self._strangers) > STRANGERS:
                transport.abort()
        elif self.open - len(self._strangers) > self._max_connections or self._is_one_too_many(
            handler, transport
        ):
            transport.abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self.open -= 1
        if (timer := self._strangers.pop(handler, None)) is not None:
            timer.cancel()
        if (source := self._source_of.pop(handler, None)) is not None:
            self._sources[source] -= 1
            if not self._sources[source]:
                del self._sources[source]

    def _is_one_too_many(self, handler: RequestHandler, transport: asyncio.Transport) -> bool:
        """Whether its source has enough of them, or it would take the places of others."""
        # Empty for a Unix socket
        peer = transport.get_extra_info("peername")
        if self._per_source is None or not peer or is_among(peer[0], self._trusted):
            return False
        source = self._source_of[handler] = network_of(peer[0])
        self._sources[source] += 1
        return self._sources[source] > self._per_source


def _is_stranger(transport: asyncio.Transport) -> bool:
    """Plain ports have no strangers: nobody can show a certificate there."""
    return transport.get_extra_info("ssl_object") is not None and not transport.get_extra_info("peercert")
