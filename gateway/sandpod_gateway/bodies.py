"""Bodies that the gateway reads itself: small ones, whole, and not for ever."""

import asyncio
import json
from typing import Any, Final, cast

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from .errors import BadRequest, TooLarge, TooSlow

Json = dict[str, Any]

SECONDS: Final = 30.0
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read_body(request: web.BaseRequest, *, most: int) -> bytes:
    too_large = TooLarge(f"the request's body has more than {most} bytes")
    if (request.content_length or 0) > most:
        raise too_large
    if request.version >= HttpVersion11 and request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
        await request.writer.write(_CONTINUE)
    data = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for piece in request.content.iter_any():
                data += piece
                if len(data) > most:
                    raise too_large
    except TimeoutError as error:
        raise TooSlow(f"the request's body took longer than {SECONDS:.0f} seconds") from error
    except (web.RequestPayloadError, ConnectionError) as error:
        raise BadRequest(f"the request's body ended early or is malformed: {error}") from error
    return bytes(data)


async def read_object(request: web.BaseRequest, *, most: int) -> Json:
    data = await read_body(request, most=most)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the request's body is not JSON") from error
    if not isinstance(value, dict):
        raise BadRequest("the request's body is not a JSON object")
    return cast("Json", value)
