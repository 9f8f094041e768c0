"""Requests and replies as the protocol spells them: JSON bodies, the headers that every reply carries, and
bounds.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec
from aiohttp.http import HttpVersion11
from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from sandpod_runtime.budget import Budget
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.lifecycle.life import Life

# A base64 write of a 100 MB file has to fit.
LARGEST_BODY = 144 << 20
# Bodies up to here are not worth accounting for.
_SMALL = 65_536

HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Authorization, X-Session-Id, X-Sandbox-Id, X-Trace-Id",
    # Instead of the versions of Python and aiohttp, which are nobody's business.
    "Server": "sandpod",
}
REQUEST_ID_HEADER = "X-Request-Id"
JSON_HEADERS = HEADERS | {"Content-Type": "application/json"}
TEXT_HEADERS = HEADERS | {"Content-Type": "text/plain; charset=utf-8"}

T = TypeVar("T")
_encoder = msgspec.json.Encoder()
encode = _encoder.encode


class Request(BaseRequest):
    """A request that knows how much memory it holds of the budget (the door gives it back at the end), what
    stands in its path where the route has a name in braces, and by which id logs and replies call it.
    """

    charged = 0
    segments: Mapping[str, str] = MappingProxyType({})
    # The path of the route that was found.
    template = ""
    id = ""
    # To be called when an event goes out.
    told: Callable[[], None] = staticmethod(lambda: None)

    async def _prepare_hook(self, response: StreamResponse) -> None:
        """Called before the head of any reply goes out, also of streams."""
        response.headers[REQUEST_ID_HEADER] = self.id


def reply(body: msgspec.Struct) -> Response:
    return Response(body=encode(body), headers=JSON_HEADERS)


def json_reply(body: Mapping[str, object], *, status: int = 200) -> Response:
    return Response(body=encode(body), status=status, headers=JSON_HEADERS)


def fault_reply(fault: Fault, *, request_id: str) -> Response:
    return json_reply(fault.body() | {"requestId": request_id}, status=fault.status)


def text_reply(text: str) -> Response:
    return Response(body=text.encode(), headers=TEXT_HEADERS)


def empty_reply() -> Response:
    return Response(status=204, headers=HEADERS)


async def invite_body(request: Request) -> None:
    """curl waits a second for this before it sends a body of more than a megabyte."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.version >= HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


class Bodies:
    """Reads JSON bodies within the budget."""

    def __init__(self, budget: Budget, life: Life) -> None:
        self._budget = budget
        self._life = life

    async def read(self, request: Request, decoder: msgspec.json.Decoder[T]) -> T:
        try:
            data = await self._bytes(request)
        except (RequestPayloadError, ValueError) as error:
            raise invalid("body", f"it cannot be read: {error}") from error
        # The request was admitted, and the end may have begun while its body was on its way.
        self._life.refuse_when_over()
        return decoded(data, decoder)

    async def _bytes(self, request: Request) -> bytes:
        await invite_body(request)
        self._admit(request, request.content_length or 0)
        parts: list[bytes] = []
        size = 0
        while part := await request.content.readany():
            parts.append(part)
            size += len(part)
            self._admit(request, size)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _admit(self, request: Request, size: int) -> None:
        if size > LARGEST_BODY:
            raise Fault(
                "FILE_TOO_LARGE",
                f"the request's body is larger than {LARGEST_BODY >> 20} MiB",
                context={"maxSize": LARGEST_BODY, "actualSize": size},
            )
        # Once as bytes, once decoded.
        if size > _SMALL and (more := 2 * size - request.charged) > 0:
            if not self._budget.take(more):
                raise Fault(
                    "RESOURCE_BUSY",
                    f"the runtime has {self._budget.total >> 20} MiB for bodies and outputs, and they are "
                    "in use; send this again later or in smaller parts",
                )
            request.charged += more


def decoded(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        # "Expected `str`, got `int` - at `$.command`"
        message, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").lstrip(".") or "body"
        raise invalid(field, message) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid("body", f"this is not JSON: {error}", code="INVALID_JSON") from error
    except RecursionError as error:
        raise invalid("body", "this JSON is nested too deeply", code="INVALID_JSON") from error
