"""The request's body on its way to the runtime: what is there already leaves together with the head, the rest
as it comes, no faster than the runtime takes it. A small body can be sent a second time, to another pod.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import hdrs, web
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpVersion11, StreamWriter

from .audit import Exchange
from .errors import BadRequest
from .framing import Framing

_MALFORMED = "the request's body ended early or is malformed: {}"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


# What is kept of a body for a second sending
RESEND_BYTES: Final = 64 * 1024
_REFUSAL_SECONDS: Final = 1.0
# For somebody who sends nothing more of it; as long as HAProxy waits.
STALL_SECONDS: Final = 300.0


class Body:
    """The request's body as it is taken from the client: once, but the beginning of it is kept, so that it
    can be sent anew as long as not more than that was taken.
    """

    def __init__(self, request: web.BaseRequest) -> None:
        self.request = request
        self.framing, self.header = body_framing(request)
        # None when more was taken than is kept.
        self._taken: bytearray | None = bytearray()
        self._leave_given = False

    @property
    def resendable(self) -> bool:
        return self._taken is not None

    def keep_no_more(self) -> None:
        """It has arrived: nobody will ask for it again."""
        self._taken = None

    @property
    def all_here(self) -> bool:
        """And small enough to be kept."""
        small = (
            self.framing is Framing.NONE or (self.request.content_length or RESEND_BYTES + 1) <= RESEND_BYTES
        )
        return small and self.request.content.is_eof()

    @property
    def keepable(self) -> int:
        """How many bytes more can be taken without the body ceasing to be resendable."""
        return 0 if self._taken is None else RESEND_BYTES - len(self._taken)

    def again(self) -> bytes:
        """What was taken for a sending before this one."""
        return bytes(self._taken or b"")

    def take_now(self) -> bytes:
        return self._keep(self.request.content.read_nowait())

    async def take(self) -> bytes:
        """What comes next; nothing at the end."""
        if not self._leave_given and _awaits_leave(self.request):
            # Only now: up to here the request could have been refused without its body.
            await self.request.writer.write(_CONTINUE)
        self._leave_given = True
        content = self.request.content
        try:
            async with asyncio.timeout(STALL_SECONDS):
                data = await (content.read(self.keepable) if self.keepable else content.readany())
        except TimeoutError as error:
            raise TimeoutError(f"nothing of it came for {STALL_SECONDS:.0f} seconds") from error
        return self._keep(data)

    def _keep(self, data: bytes) -> bytes:
        if self._taken is not None:
            if len(self._taken) + len(data) <= RESEND_BYTES:
                self._taken += data
            else:
                self._taken = None
        return data


class Upload:
    """One sending of a body. `confirm` is asked before more is taken of it than can be sent anew: whether the
    runtime is still there, now that the request's head has been sent.
    """

    def __init__(
        self,
        body: Body,
        connection: ResponseHandler,
        *,
        exchange: Exchange,
        confirm: Callable[[], Awaitable[bool]],
    ) -> None:
        self._body = body
        self._exchange = exchange
        self._confirm = confirm
        self._connection = connection
        self._writer = StreamWriter(connection, asyncio.get_running_loop())
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self.complete = False

    async def start(self, head: bytes) -> None:
        body, frame = self._body, self._body.framing.frame
        if (error := body.request.content.exception()) is not None:
            raise BadRequest(_MALFORMED.format(error))
        data = head + frame(body.again())
        if body.all_here:
            data += frame(body.take_now()) + body.framing.end
            self.complete = True
            await self._writer.write(data)
            return
        await self._writer.write(data)
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
        body, frame = self._body, self._body.framing.frame
        try:
            while data := await body.take():
                self._exchange.moved += len(data)
                if not body.keepable and body.resendable and not await self._confirm():
                    # Its refusal is on the way and ends this, unless it had admitted the request when its end
                    # was decreed: then it waits for the rest.
                    await asyncio.sleep(_REFUSAL_SECONDS)
                if not await self._write(frame(data)):
                    return
        except Exception as error:
            # Whatever it was: half a body must not look like a whole one.
            self._failure = error
            self._connection.abort()
            return
        self.complete = await self._write(body.framing.end)

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
