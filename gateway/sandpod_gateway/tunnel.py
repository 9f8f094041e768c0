"""WebSockets: after the 101 both connections are pipes. The frames inside are nobody's business here;
whichever side closes, the other is closed too.
"""

import asyncio
from typing import Any, cast

from aiohttp import hdrs, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage, StreamWriter

from . import headers
from .audit import Exchange
from .errors import BrokenOff
from .relay import status_line

_UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"


def wants_tunnel(request: web.BaseRequest) -> bool:
    connection = {token.strip().lower() for token in request.headers.get(hdrs.CONNECTION, "").split(",")}
    return (
        request.method == hdrs.METH_GET
        and "upgrade" in connection
        and request.headers.get(hdrs.UPGRADE, "").lower() == "websocket"
    )


class _Pipe:
    """One direction, in the shape of a parser, which is what both ends' protocols hand their bytes to."""

    def __init__(
        self, *, source: BaseProtocol, sink: StreamWriter, ended: asyncio.Event, exchange: Exchange
    ) -> None:
        self._source = source
        self._exchange = exchange
        self._sink = sink
        self._ended = ended
        self._draining: asyncio.Task[None] | None = None

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        transport = self._sink.transport
        if transport is None or transport.is_closing():
            self._ended.set()
            return False, b""
        self._exchange.moved += len(data)
        transport.write(data)
        if self._sink.protocol.writing_paused and self._draining is None:
            # The other side does not keep up: this one has to wait, or its bytes would pile up here.
            self._source.pause_reading()
            self._draining = asyncio.create_task(self._drain())
        return False, b""

    def feed_eof(self) -> None:
        self._ended.set()

    async def _drain(self) -> None:
        try:
            await self._sink.drain()
        except ConnectionError:
            self._ended.set()
            return
        self._draining = None
        self._source.resume_reading()

    def cancel(self) -> None:
        if self._draining is not None:
            self._draining.cancel()


async def tunnel(
    request: web.BaseRequest,
    connection: ResponseHandler,
    message: RawResponseMessage,
    *,
    exchange: Exchange,
    to_client: headers.Filter = headers.to_client,
) -> web.StreamResponse:
    """Passes the 101 on and then every byte, until one side closes."""
    lines = to_client(message.raw_headers)
    if lines is None:
        raise BrokenOff("the answer has a header with control characters in it")
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    up = _Pipe(source=request.protocol, sink=StreamWriter(connection, loop), ended=ended, exchange=exchange)
    down = _Pipe(source=connection, sink=StreamWriter(request.protocol, loop), ended=ended, exchange=exchange)
    try:
        await request.writer.write(b"".join((status_line(message), *lines, _UPGRADE, b"\r\n")))
        # Whatever came in behind the two heads goes through the pipes first.
        # Annotated as its only caller in aiohttp needs it; any parser of this shape will do.
        cast("Any", request.protocol).set_parser(up)
        connection.set_parser(down, None)
        await ended.wait()
    except ConnectionError:
        # The client has left before it saw the 101.
        pass
    finally:
        up.cancel()
        down.cancel()
    return Switched()


class Switched(web.StreamResponse):
    """What is left to say after a tunnel: nothing, and not on this connection."""

    def __init__(self) -> None:
        super().__init__(status=101)

    @property
    def keep_alive(self) -> bool:
        return False

    async def prepare(self, request: web.BaseRequest) -> None:
        """All has been said."""

    async def write_eof(self, data: bytes = b"") -> None:
        """All has been written."""
