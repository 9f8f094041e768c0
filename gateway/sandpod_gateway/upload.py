"""The request's body on its way to the runtime: what is there already leaves together with the head, the rest
as it comes, no faster than the runtime takes it.
"""

import asyncio

from aiohttp import hdrs, web
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpVersion11, StreamWriter

from .errors import BadRequest
from .framing import Framing

_MALFORMED = "the request's body ended early or is malformed: {}"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Upload:
    def __init__(self, request: web.BaseRequest, connection: ResponseHandler, framing: Framing) -> None:
        self._request = request
        self._connection = connection
        self._writer = StreamWriter(connection, asyncio.get_running_loop())
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._framing = framing
        self.complete = False

    async def start(self, head: bytes) -> None:
        content = self._request.content
        if content.exception() is not None:
            raise BadRequest(_MALFORMED.format(content.exception()))
        if content.is_eof():
            body = self._framing.frame(content.read_nowait()) + self._framing.end
            self.complete = True
            await self._writer.write(head + body)
            return
        await self._writer.write(head)
        self._task = asyncio.create_task(self._pump())

    def raise_if_failed(self) -> None:
        """When the body broke off, that is why no answer came."""
        if self._failure is not None:
            raise BadRequest(_MALFORMED.format(self._failure))

    async def stop(self) -> None:
        """Lets go of the request's body: until then nobody else may read it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _pump(self) -> None:
        content, frame = self._request.content, self._framing.frame
        try:
            if _awaits_leave(self._request):
                # Only now: up to here the request could have been refused without its body.
                await self._request.writer.write(_CONTINUE)
            while data := await content.readany():
                if not await self._write(frame(data)):
                    return
        except Exception as error:
            # Whatever it was: half a body must not look like a whole one.
            self._failure = error
            self._connection.abort()
            return
        self.complete = await self._write(self._framing.end)

    async def _write(self, data: bytes) -> bool:
        try:
            await self._writer.write(data)
        except ConnectionError:
            # The runtime takes no more. It may have answered before; whoever reads the answer finds out.
            return False
        return True


def body_framing(request: web.BaseRequest) -> tuple[Framing, bytes]:
    """How the body's end is told to the runtime, and the header line that says so."""
    # The parser has refused both at once, and lengths that disagree.
    coding = request.headers.get(hdrs.TRANSFER_ENCODING)
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise BadRequest(
                f"Transfer-Encoding {coding!r} is not supported: send chunked or a Content-Length"
            )
        return Framing.CHUNKED, b"Transfer-Encoding: chunked\r\n"
    length = request.headers.get(hdrs.CONTENT_LENGTH)
    if length is None:
        return Framing.NONE, b""
    return Framing.LENGTH, b"Content-Length: " + length.encode() + b"\r\n"


def _awaits_leave(request: web.BaseRequest) -> bool:
    return request.version >= HttpVersion11 and request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
