"""One request to a runtime and its answer back, streamed both ways as the bytes come. Nothing is repeated,
nothing is decoded or encoded anew; whichever side hangs up, the other side's connection is closed at once.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, cast

from aiohttp import ClientError, hdrs, web
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from sandpod_crds.names import CREDENTIAL_HEADER

from . import headers
from .addresses import Address, host_header
from .audit import Exchange
from .errors import BrokenOff, NotReady
from .pool import Connection, Pool
from .relay import Relay
from .tunnel import tunnel
from .upload import Upload, body_framing

# Asking for these again changes nothing, so that the client may be told to.
_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_CREDENTIAL: Final = CREDENTIAL_HEADER.encode()
# A refusal of the runtime is a few hundred bytes; more than this is not looked into.
_REFUSAL_BYTES: Final = 16 * 1024
_MAX_LINE: Final = 16 * 1024
_MAX_HEADERS: Final = 256
_LOST: Final = (ClientError, HttpProcessingError, ConnectionError)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be sent where. `target` is path and query as they came, in bytes. `identity_headers` are the
    names and prefixes by which the door is told who is calling. `upgrade` asks for a WebSocket.
    """

    address: Address
    target: bytes
    credential: str
    identity_headers: Iterable[str]
    upgrade: bool


class Proxy:
    def __init__(self, *, pool: Pool) -> None:
        self._pool = pool

    async def forward(self, request: web.BaseRequest, order: Order, exchange: Exchange) -> web.StreamResponse:
        framing, header = body_framing(request)
        head = _head(request, order, exchange, header)
        async with self._pool.lease(order.address) as lease:
            upload = Upload(request, lease.connection, framing)
            try:
                message, payload = await _ask(request, head, lease.connection, upload)
                already = await _unless_stranger(message, payload)
                if message.code == 101:
                    if not order.upgrade:
                        raise BrokenOff("the runtime switched protocols without being asked to")
                    exchange.status, exchange.answered = message.code, perf_counter()
                    return await tunnel(request, lease.connection, message)
                relay = Relay(request, message, keep_alive=exchange.keep_alive)
                exchange.status, exchange.answered = message.code, perf_counter()
                exchange.reason = await relay.run(payload, already=already)
                lease.reusable = relay.complete and upload.complete
                return relay
            finally:
                await upload.stop()


async def _ask(
    request: web.BaseRequest, head: bytes, connection: Connection, upload: Upload
) -> tuple[RawResponseMessage, StreamReader]:
    connection.set_response_params(
        skip_payload=request.method == hdrs.METH_HEAD,
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_MAX_LINE,
        max_field_size=_MAX_LINE,
        max_headers=_MAX_HEADERS,
    )
    try:
        await upload.start(head)
        while True:
            message, payload = await connection.read()
            # What comes before the answer (100, 103) is between the two ends of this connection.
            if message.code >= 200 or message.code == 101:
                connection.reading = payload
                return message, payload
    except _LOST as error:
        upload.raise_if_failed()
        if request.method in _SAFE:
            raise NotReady(
                "the sandbox's pod broke off before it answered; it may just have gone away"
            ) from error
        raise BrokenOff(
            "the sandbox's pod broke off before it answered: what you asked for may have been done, in part "
            "or in whole, or not at all"
        ) from error


def _head(request: web.BaseRequest, order: Order, exchange: Exchange, framing: bytes) -> bytes:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n" if order.upgrade else b""
    return b"".join(
        (
            request.method.encode() + b" " + order.target + b" HTTP/1.1\r\n",
            b"Host: " + host_header(order.address) + b"\r\n",
            *headers.to_runtime(request.raw_headers, identity_headers=order.identity_headers),
            b"traceparent: " + exchange.traceparent.encode() + b"\r\n",
            # The client's own ones are gone: there is exactly one.
            _CREDENTIAL + b": " + order.credential.encode() + b"\r\n",
            framing,
            upgrade,
            b"\r\n",
        )
    )


async def _unless_stranger(message: RawResponseMessage, payload: StreamReader) -> bytes:
    """A runtime that does not know our credential is another pod's: it has refused before doing anything, and
    the table will know the new pod in a moment. Every other 401 is an answer: what was read of it is
    returned.
    """
    length = message.headers.get(hdrs.CONTENT_LENGTH, "")
    if message.code != 401 or not length.isdigit() or int(length) > _REFUSAL_BYTES:
        return b""
    try:
        data = await payload.read()
    except _LOST as error:
        raise NotReady(
            "the sandbox's pod broke off while it refused this; it may just have gone away"
        ) from error
    if _is_unauthenticated(data):
        raise NotReady("the sandbox's pod has just been replaced, and the new one is not known here yet")
    return data


def _is_unauthenticated(body: bytes) -> bool:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        # RecursionError: whatever runs in the pod may answer with a thousand brackets.
        return False
    return isinstance(answer, dict) and cast("dict[str, Any]", answer).get("code") == "UNAUTHENTICATED"
