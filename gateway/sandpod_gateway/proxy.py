"""One request to a runtime and its answer back, streamed both ways as the bytes come. Nothing is decoded or
encoded anew; whichever side hangs up, the other side's connection is closed at once. What leases.py says
about requests that meet a sandbox going to sleep is done here.
"""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from sandpod_crds.names import CREDENTIAL_HEADER

from . import headers
from .addresses import Address, host_header
from .audit import Exchange
from .errors import BrokenOff, PodLeaving
from .leases import ATTEMPTS, Leases
from .pool import Lease, Pool
from .relay import Relay
from .tunnel import tunnel
from .upload import Body, Upload
from .upstream import LOST, answer_of, connection_to, expect_answer, unless_refused

# Asking for these again changes nothing.
_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_CREDENTIAL: Final = CREDENTIAL_HEADER.encode()


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be sent where. `target` is path and query as they came, in bytes. `identity_headers` are the
    names and prefixes by which the door is told who is calling. `upgrade` asks for a WebSocket.
    """

    address: Address
    pod_uid: str
    target: bytes
    credential: str
    identity_headers: Iterable[str]
    upgrade: bool


class Proxy:
    def __init__(self, *, pool: Pool, leases: Leases) -> None:
        self._pool = pool
        self._leases = leases

    async def forward(self, body: Body, order: Order, exchange: Exchange) -> web.StreamResponse:
        """Raises PodLeaving when nothing was done there."""
        if body.request.method in _SAFE and not order.upgrade:
            async with self._connection(order) as lease:
                return await self._exchange(body, order, exchange, lease)
        for attempt in range(ATTEMPTS):
            await self.keep_awake(order, attempt=attempt)
            async with self._connection(order) as lease:
                # Connecting may have taken longer than the runtime has promised to be there.
                if self._leases.holds(order.pod_uid):
                    return await self._exchange(body, order, exchange, lease)
                lease.reusable = True
        raise PodLeaving("the sandbox's pod is too slow to be sure that it stays awake for this")

    def _connection(self, order: Order) -> AbstractAsyncContextManager[Lease]:
        return connection_to(
            self._pool, pod_uid=order.pod_uid, address=order.address, credential=order.credential
        )

    async def keep_awake(self, order: Order, *, attempt: int = 0) -> None:
        await self._leases.ensure(
            pod_uid=order.pod_uid, address=order.address, credential=order.credential, attempt=attempt
        )

    async def _exchange(
        self, body: Body, order: Order, exchange: Exchange, lease: Lease
    ) -> web.StreamResponse:
        request, connection = body.request, lease.connection
        confirm = partial(
            self._leases.confirm, pod_uid=order.pod_uid, address=order.address, credential=order.credential
        )
        upload = Upload(body, connection, confirm=confirm)
        try:
            message, payload = await _ask(body, order, exchange, lease, upload)
            already = await unless_refused(message, payload)
            body.keep_no_more()
            if message.code == 101:
                if not order.upgrade:
                    raise BrokenOff("the runtime switched protocols without being asked to")
                exchange.status, exchange.answered = message.code, perf_counter()
                return await tunnel(request, connection, message)
            relay = Relay(request, message, keep_alive=exchange.keep_alive)
            exchange.status, exchange.answered = message.code, perf_counter()
            exchange.reason = await relay.run(payload, already=already)
            lease.reusable = relay.complete and upload.complete
            return relay
        finally:
            await upload.stop()


async def _ask(
    body: Body, order: Order, exchange: Exchange, lease: Lease, upload: Upload
) -> tuple[RawResponseMessage, StreamReader]:
    method = body.request.method
    expect_answer(lease.connection, without_body=method == hdrs.METH_HEAD)
    try:
        await upload.start(_head(body, order, exchange))
        return await answer_of(lease.connection)
    except LOST as error:
        upload.raise_if_failed()
        if method in _SAFE and not order.upgrade:
            raise PodLeaving(
                "the sandbox's pod broke off before it answered; it may just have gone away"
            ) from error
        raise BrokenOff(
            "the sandbox's pod broke off before it answered: what you asked for may have been done, in part "
            "or in whole, or not at all"
        ) from error


def _head(body: Body, order: Order, exchange: Exchange) -> bytes:
    request = body.request
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n" if order.upgrade else b""
    return b"".join(
        (
            request.method.encode() + b" " + order.target + b" HTTP/1.1\r\n",
            b"Host: " + host_header(order.address) + b"\r\n",
            *headers.to_runtime(request.raw_headers, identity_headers=order.identity_headers),
            b"traceparent: " + exchange.traceparent.encode() + b"\r\n",
            # The client's own ones are gone: there is exactly one.
            _CREDENTIAL + b": " + order.credential.encode() + b"\r\n",
            body.header,
            upgrade,
            b"\r\n",
        )
    )
