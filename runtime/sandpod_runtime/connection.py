"""Connections: how many there may be, how long they may say nothing, and what answers to what is not HTTP."""

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from sandpod_runtime import trace
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.wire import Request, fault_reply

# Connections come before any credential: strangers must not take all descriptors, or wait for ever.
_MOST_CONNECTIONS = 1000
_HEAD_SECONDS = 10.0
# A client whose body was refused may still be sending it, and would not see the answer if we hung up at once.
_LINGERING_SECONDS = 2.0
# Longer than clients keep a connection to use it again, so that they are the ones who close it.
_KEPT_SECONDS = 75.0
# A client whose machine has gone says nothing, and what it asked for would go on: after this long and so many
# questions without an answer it counts as hung up.
_SILENT_SECONDS = 60
_QUESTIONS = 4
_QUESTION_SECONDS = 15

logger = logging.getLogger(__name__)


class Connection(RequestHandler):
    """aiohttp's connection, which must soon say what it wants, and whose answers to what is not HTTP are the
    protocol's errors as well.
    """

    __slots__ = ("_crowd", "_patience", "_put_off")

    def __init__(self, crowd: "Crowd", server: Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._crowd = crowd
        self._patience: asyncio.TimerHandle | None = None
        self._put_off = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        real = cast("asyncio.Transport", transport)
        if not self._crowd.enter(self):
            real.abort()
            return
        super().connection_made(transport)
        _notice_the_dead(real.get_extra_info("socket"))
        self._patience = self._loop.call_later(self._crowd.head_seconds, real.abort)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._crowd.leave(self)
        self.head_is_complete()
        super().connection_lost(exc)

    def head_is_complete(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def wait_once_more(self) -> bool:
        """For a request that comes with the credential. False when it was waited for before."""
        if self._put_off or self.transport is None:
            return False
        self._put_off = True
        self._patience = self._loop.call_later(self._crowd.head_seconds, self.transport.abort)
        return True

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("half a reply was sent; another one would be taken for its rest")
        known = cast("Request", request)
        known.id = known.id or trace.enter(request.headers).request_id
        if status == 400:
            fault = invalid("request", f"this is not HTTP/1.1: {message}"[:500])
        else:
            logger.error("a request failed", exc_info=exc)
            fault = Fault("INTERNAL_ERROR", "the runtime failed; its log says how")
        reply = fault_reply(fault, request_id=known.id)
        reply.force_close()
        return reply


class Crowd:
    """The connections that are open, and the bounds on them."""

    def __init__(
        self, *, most: int, head_seconds: float = _HEAD_SECONDS, kept_seconds: float = _KEPT_SECONDS
    ) -> None:
        """A connection has `head_seconds` for the head of its first request, and after an answer
        `kept_seconds` for the next one.
        """
        self.head_seconds = head_seconds
        self.kept_seconds = kept_seconds
        self._most = most
        self._present: set[RequestHandler] = set()

    def enter(self, connection: RequestHandler) -> bool:
        if len(self._present) >= self._most:
            return False
        self._present.add(connection)
        return True

    def leave(self, connection: RequestHandler) -> None:
        self._present.discard(connection)


class ControlServer(Server):
    def __init__(self, handler: Callable[[BaseRequest], Awaitable[StreamResponse]], *, crowd: Crowd) -> None:
        # Cancellation is how a handler learns that its client hung up.
        super().__init__(handler, request_factory=self._request, handler_cancellation=True)
        self._crowd = crowd

    def __call__(self) -> RequestHandler:
        return Connection(
            self._crowd,
            self,
            loop=asyncio.get_running_loop(),
            access_log=cast("Any", None),
            auto_decompress=False,  # a small body could become a large one
            lingering_time=_LINGERING_SECONDS,
            keepalive_timeout=self._crowd.kept_seconds,
        )

    @staticmethod
    def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Request:
        cast("Connection", protocol).head_is_complete()
        return Request(message, payload, protocol, writer, task, asyncio.get_running_loop())


def _notice_the_dead(connection: socket.socket) -> None:
    for option, value in (
        (socket.TCP_KEEPIDLE, _SILENT_SECONDS),
        (socket.TCP_KEEPINTVL, _QUESTION_SECONDS),
        (socket.TCP_KEEPCNT, _QUESTIONS),
    ):
        with contextlib.suppress(OSError):  # it has gone already
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def most_connections() -> int:
    """At most half of the descriptors: commands need theirs."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(_MOST_CONNECTIONS, files // 2)
