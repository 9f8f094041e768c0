"""The runtime's answer on its way to the client, as aiohttp's server wants a response to look. Its head is
written as bytes here and not by aiohttp, which would add headers of its own and re-encode the runtime's.
"""

import logging
from typing import Final

from aiohttp import ClientError, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

from . import headers
from .audit import Exchange
from .errors import BrokenOff
from .framing import Framing

log = logging.getLogger(__name__)

BROKE_OFF: Final = "the runtime broke off"
CLIENT_LEFT: Final = "the client hung up"
FAILED: Final = "the gateway failed"

# RuntimeError: what aiohttp's reader raises when its connection is gone and nothing more is known.
_READ_ERRORS: Final = (ClientError, HttpProcessingError, RuntimeError)


class Relay(web.StreamResponse):
    """`complete` once the whole answer has been passed on. `keep_alive` then tells whether the client's
    connection may serve another request.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        message: RawResponseMessage,
        *,
        exchange: Exchange,
        to_client: headers.Filter = headers.to_client,
    ) -> None:
        super().__init__(status=message.code)
        self._request = request
        self._exchange = exchange
        self._framing, length = _framing(request, message)
        self._alive = exchange.keep_alive and request.keep_alive and request.version >= HttpVersion11
        self._alive = self._alive and self._framing is not Framing.CLOSE
        lines = to_client(message.raw_headers)
        if lines is None:
            raise BrokenOff("the answer has a header with control characters in it")
        close = b"" if self._alive else b"Connection: close\r\n"
        self._head = b"".join((status_line(message), *lines, length, close, b"\r\n"))
        self.complete = False

    async def run(self, payload: StreamReader, *, already: bytes = b"") -> str:
        """Passes the answer on; returns why it ended early, or nothing."""
        try:
            # In one piece with the head, when it is there: one packet less, and one wake-up of the client.
            data = self._head + self._framing.frame(already + payload.read_nowait())
            while not payload.at_eof():
                self._exchange.moved += len(data)
                await self._request.writer.write(data)
                data = self._framing.frame(await payload.readany())
            await self._request.writer.write(data + self._framing.end)
        except ConnectionError:
            return self._abort(CLIENT_LEFT)
        except _READ_ERRORS:
            return self._abort(BROKE_OFF)
        except Exception:
            # Not for the door: its own answer would land in the middle of this one.
            log.exception("an answer could not be passed on")
            return self._abort(FAILED)
        self.complete = True
        return ""

    def _abort(self, reason: str) -> str:
        # A connection that ends before its time is the only way left to say that the answer is not whole.
        self._alive = False
        if self._request.transport is not None:
            self._request.transport.abort()
        return reason

    @property
    def keep_alive(self) -> bool:
        return self._alive

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        """All has been written."""


def _framing(request: web.BaseRequest, message: RawResponseMessage) -> tuple[Framing, bytes]:
    lengths = set(headers.values(message.raw_headers, b"content-length"))
    if message.chunked:
        # The parser went by the chunks. A length beside them is a lie that somebody behind us might believe.
        lengths.clear()
    if len(lengths) > 1 or any(not length.isdigit() for length in lengths):
        raise BrokenOff("the runtime's answer has no usable Content-Length")
    line = b"".join(b"Content-Length: " + length + b"\r\n" for length in lengths)
    if request.method == hdrs.METH_HEAD or message.code == 304:
        return Framing.NONE, line
    if message.code == 204:
        return Framing.NONE, b""
    if lengths:
        return Framing.LENGTH, line
    if request.version >= HttpVersion11:
        return Framing.CHUNKED, b"Transfer-Encoding: chunked\r\n"
    return Framing.CLOSE, b""


def status_line(message: RawResponseMessage) -> bytes:
    reason = message.reason if message.reason.isascii() and message.reason.isprintable() else ""
    return f"HTTP/1.1 {message.code} {reason}\r\n".encode()
