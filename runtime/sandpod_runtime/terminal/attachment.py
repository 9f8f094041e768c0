"""One socket on one terminal: the replay, then all that is live; what is typed, within bounds; the close."""

import asyncio
import contextlib
import logging

from aiohttp.http_websocket import WSMsgType
from aiohttp.web_response import StreamResponse
from aiohttp.web_ws import WebSocketResponse

from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.terminal import control
from sandpod_runtime.terminal.control import ControlError
from sandpod_runtime.terminal.terminal import Terminal
from sandpod_runtime.terminal.viewer import TOO_SLOW, TRY_AGAIN, Farewell, Viewer
from sandpod_runtime.wire import HEADERS, Request

# A paste is one frame.
LARGEST_FRAME = 1 << 20
FAILED = 1011
# A close frame's payload has 125 bytes, two of which are its code.
_LONGEST_REASON = 123
_PING_SECONDS = 30.0
# Three pings without any answer.
_SILENCE_SECONDS = 100.0
# A piece of output has to get through in so much time; the terminal waits no longer for its only viewer.
_STALLED_SECONDS = 10.0
# For the client to read what is on its way and to close its side.
_CLOSING_SECONDS = 5.0

_SILENT = Farewell(code=FAILED, reason="no answer to pings")
BROKEN = Farewell(
    code=FAILED, reason="the runtime failed", message=control.error("the runtime failed; its log says how")
)

logger = logging.getLogger(__name__)


_UNKNOWN = 1008
_REFUSALS = {"PROCESS_NOT_FOUND": _UNKNOWN, "RESOURCE_BUSY": TRY_AGAIN}


def refusal(fault: Fault) -> Farewell:
    code = _REFUSALS.get(fault.code, FAILED)
    return Farewell(code=code, reason=fault.code, message=control.error(fault.message))


async def upgraded(request: Request) -> "Attachment":
    # Compressing would cost more than it saves here, and a small frame could become a large one.
    socket = WebSocketResponse(compress=False, max_msg_size=LARGEST_FRAME)
    if not socket.can_prepare(request):
        raise invalid("Upgrade", "this is not the handshake of a WebSocket of version 13")
    socket.headers.update(HEADERS)
    await socket.prepare(request)
    return Attachment(socket, request)


class Attachment:
    def __init__(self, socket: WebSocketResponse, request: Request) -> None:
        self._socket = socket
        self._request = request

    @property
    def response(self) -> StreamResponse:
        return self._socket

    async def serve(self, terminal: Terminal) -> None:
        """Until one side has enough. Raises Fault when there are too many already."""
        replay, viewer = terminal.attach()
        tasks = [
            asyncio.create_task(self._send(replay, viewer)),
            asyncio.create_task(self._receive(terminal)),
        ]
        try:
            await asyncio.wait({*tasks, viewer.was_cut}, return_when=asyncio.FIRST_COMPLETED)
            farewell = viewer.was_cut.result() if viewer.was_cut.done() else _first_of(tasks)
        finally:
            terminal.detach(viewer)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if (transport := self._request.transport) is not None:
                # A close waits until all was sent; this one may read nothing for ever.
                asyncio.get_running_loop().call_later(_CLOSING_SECONDS, _abort, transport)
        if farewell is not None:
            await self.leave(farewell)

    async def leave(self, farewell: Farewell) -> None:
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                if farewell.message is not None:
                    await self._socket.send_str(farewell.message.decode())
                reason = farewell.reason.encode()[:_LONGEST_REASON]
                await self._socket.close(code=farewell.code, message=reason)

    async def _send(self, replay: bytes, viewer: Viewer) -> Farewell | None:
        loop = asyncio.get_running_loop()
        next_ping = loop.time() + _PING_SECONDS
        try:
            if replay:
                await self._send_bytes(replay)
            await self._socket.send_str(control.READY.decode())
            while True:
                found = await viewer.next(max(0.0, next_ping - loop.time()))
                if isinstance(found, Farewell):
                    return found
                if found is not None:
                    await self._send_bytes(found)
                if loop.time() >= next_ping:
                    await self._socket.ping()
                    next_ping = loop.time() + _PING_SECONDS
        except TimeoutError:
            return TOO_SLOW
        except ConnectionError:
            return None

    async def _send_bytes(self, data: bytes) -> None:
        async with asyncio.timeout(_STALLED_SECONDS):
            await self._socket.send_bytes(data)

    async def _receive(self, terminal: Terminal) -> Farewell | None:
        while True:
            try:
                message = await self._socket.receive(_SILENCE_SECONDS)
            except TimeoutError:
                return _SILENT
            if message.type is WSMsgType.BINARY:
                await terminal.write(message.data)
            elif message.type is WSMsgType.TEXT:
                with contextlib.suppress(ConnectionError):
                    await self._control(terminal, message.data)
            else:
                return None  # the client has left, or spoke no WebSocket: aiohttp has answered

    async def _control(self, terminal: Terminal, text: str) -> None:
        try:
            if size := control.wanted_size(text):
                terminal.resize(size)
        except ControlError as error:
            await self._socket.send_str(control.error(str(error)).decode())


def _abort(transport: asyncio.Transport) -> None:
    # asyncio fails when it is to abort what it has closed.
    if transport.get_extra_info("socket").fileno() >= 0:
        transport.abort()


def _first_of(tasks: "list[asyncio.Task[Farewell | None]]") -> Farewell | None:
    for task in tasks:
        if task.done():
            try:
                return task.result()
            except Exception:
                logger.exception("a terminal's socket failed")
                return BROKEN
    return None
