"""One connection of a listener's, between aiohttp's protocol and somebody who may be hostile: how long a
head, its bytes and a client that reads nothing are waited for, and how a connection ends when we drain.
"""

import asyncio
from http import HTTPStatus
from typing import Any, Final

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion10, HttpVersion11, RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from yarl import URL

# For a head from its first byte, however it drips
HEAD_SECONDS: Final = 10.0
# For somebody who takes nothing of the answer; as long as HAProxy waits. A tunnel may be silent for longer.
STALL_SECONDS: Final = 300.0
# Requests that may wait behind the one that is served. aiohttp takes 32, each with a head of its own.
_PIPELINED: Final = 2

_VERSIONS: Final = (HttpVersion10, HttpVersion11)
_ROOT: Final = URL("/")


class Connection(RequestHandler):
    """`max_head` bytes are read of a head, or a little more: as much as comes in one piece."""

    # As its base has; a few hundred bytes for each connection.
    __slots__ = ("_ends", "_head_bytes", "_head_timer", "_max_head", "_newest", "_stall_timer")

    def __init__(self, manager: web.Server, *, max_head: int, **options: Any) -> None:
        super().__init__(manager, **options)
        self._max_msg_queue_size = _PIPELINED
        self._msg_queue_resume_size = _PIPELINED - 1
        self._max_head = max_head
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        # The body of the newest request: until it ends, no byte is of a head.
        self._newest: StreamReader | None = None
        self._ends = False

    @property
    def _is_waiting(self) -> bool:
        """For a request's head. One that has just been opened is too, but its task has yet to run."""
        return not self._request_count or (self._waiter is not None and not self._waiter.done())

    def data_received(self, data: bytes) -> None:
        in_body = self._payload_parser is not None or (self._newest is not None and not self._newest.is_eof())
        count = self._request_count
        super().data_received(data)
        if self._request_count != count:
            self._a_head_is_whole()
        elif not in_body and data:
            self._a_head_goes_on(len(data))
        # aiohttp puts a parser's error in the queue behind the request that it happened in, which then waits
        # for the rest of its body for ever.
        if self._messages and not isinstance(self._messages[-1][0], RawRequestMessage):
            request = self._current_request
            if request is not None and not request.content.is_eof():
                request.content.set_exception(RequestPayloadError("malformed chunk"))

    def _a_head_is_whole(self) -> None:
        self._head_bytes = 0
        self._head_timer = _stopped(self._head_timer)
        if self._messages:
            self._newest = self._messages[-1][1]

    def _a_head_goes_on(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._max_head:
            self._give_up(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._head_timer is None and self._is_waiting:
            # Behind a request that is still served, nobody waits for the head: its time begins later.
            self._head_timer = self._loop.call_later(HEAD_SECONDS, self._give_up, HTTPStatus.REQUEST_TIMEOUT)

    def _give_up(self, status: HTTPStatus) -> None:
        if self._is_waiting and self.transport is not None:
            # Nothing else is being written: no request is under way.
            head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode())
        self.force_close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self._loop.call_later(STALL_SECONDS, self._cut_off)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall_timer = _stopped(self._stall_timer)

    def _cut_off(self) -> None:
        # Closing would wait for the bytes that nobody takes.
        if self._payload_parser is None and self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._head_timer = _stopped(self._head_timer)
        self._stall_timer = _stopped(self._stall_timer)

    def close(self) -> None:
        """As soon as nothing is under way. aiohttp's own throws away from here on what comes of a body or a
        tunnel, and leaves idle connections open on which it no longer listens.
        """
        if self._is_waiting and self._request_count:
            self.force_close()
        else:
            self._ends = True

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        finished = await super().finish_response(request, resp, start_time)
        if self._messages:
            # Perhaps parsed only now, behind an upgrade that was declined.
            self._a_head_is_whole()
        elif self._ends:
            super().close()
        return finished

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Without what aiohttp tells of itself and of the bytes that it did not like."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun: another one would land in the middle of it")
        response = web.Response(status=status, text=f"{status} {HTTPStatus(status).phrase}\n")
        response.force_close()
        return response


class _Request(web.BaseRequest):
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        # Versions are for attackers only.
        response.headers.popall(hdrs.SERVER, None)


def request_of(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    if message.version not in _VERSIONS:
        # The parser knows 0.9 and 2.0 as well, and would answer in them: no path is none of any door's.
        message = message._replace(version=HttpVersion11, path="*", should_close=True)
    if not message.path.startswith("/"):
        # Absolute and authority forms are refused by the door, which sees the raw path. aiohttp would take
        # them apart here, where an error ends the connection without an answer.
        message = message._replace(url=_ROOT)
    return _Request(message, payload, protocol, writer, task, asyncio.get_running_loop())


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
