"""One request to a sandbox and its answer back, streamed both ways as the bytes come. Nothing is decoded or
encoded anew; whichever side hangs up, the other side's connection is closed at once. What leases.py says
about requests that meet a sandbox going to sleep is done here.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final

from aiohttp import hdrs, web
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from . import headers
from .addresses import Address
from .audit import Exchange
from .errors import BadRequest, BrokenOff, NobodyListens, PodLeaving, ProgramBrokeOff, Stale, Unreachable
from .leases import ATTEMPTS, Leases
from .pool import Lease, Pool
from .relay import Relay
from .tunnel import tunnel
from .upload import Body, Upload
from .upstream import LOST, answer_of, ask_to_sleep, connection_to, expect_answer, unless_refused

# Asking for these again changes nothing.
_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))


@dataclass(frozen=True, slots=True)
class Runtime:
    """The pod that a request is for, as its runtime is reached."""

    address: Address
    pod_uid: str
    credential: str


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be sent where. `target` is path and query as they came, in bytes; `lines` are header lines
    but for those of the body. `upgrade` asks for a WebSocket.
    """

    runtime: Runtime
    target: bytes
    lines: Sequence[bytes]
    upgrade: bool = False
    # A program's own port, beside the runtime. Whoever answers there is a stranger: its 503 is an answer.
    app: Address | None = None
    to_client: headers.Filter = headers.to_client


def request_target(text: str) -> bytes:
    """The bytes of the request line. The upstream is chosen before and elsewhere: whatever stands here,
    `//host` too, is only ever a path.
    """
    if not text.startswith("/") or not text.isascii() or not text.isprintable() or set(" #") & set(text):
        raise BadRequest("the path holds characters that a URL must percent-encode, or is none")
    return text.encode("ascii")


class Proxy:
    """`apps` are the connections to programs, which close them sooner than a runtime does."""

    def __init__(self, *, pool: Pool, apps: Pool, leases: Leases) -> None:
        self._pool = pool
        self._apps = apps
        self._leases = leases

    async def forward(self, body: Body, order: Order, exchange: Exchange) -> web.StreamResponse:
        """Raises PodLeaving when nothing was done there."""
        if order.app is not None:
            return await self._to_app(body, order, order.app, exchange)
        if _is_safe(body, order):
            async with self._connection(order) as lease:
                return await self._exchange(body, order, exchange, lease)
        return await self._leased(body, order, exchange)

    async def keep_awake(self, runtime: Runtime, *, attempt: int = 0) -> None:
        await self._leases.ensure(
            pod_uid=runtime.pod_uid, address=runtime.address, credential=runtime.credential, attempt=attempt
        )

    async def put_to_sleep(self, runtime: Runtime) -> None:
        await ask_to_sleep(
            self._pool, pod_uid=runtime.pod_uid, address=runtime.address, credential=runtime.credential
        )

    async def is_awake(self, runtime: Runtime) -> bool:
        """Asked now, whatever is known."""
        return await self._leases.confirm(
            pod_uid=runtime.pod_uid, address=runtime.address, credential=runtime.credential
        )

    async def _to_app(
        self, body: Body, order: Order, address: Address, exchange: Exchange
    ) -> web.StreamResponse:
        try:
            try:
                return await self._leased(body, order, exchange)
            except Stale:
                # Those that are left are older still.
                self._apps.forget(address)
                return await self._leased(body, order, exchange)
        except Unreachable as error:
            # Of a pod that has gone, nobody says that it stays awake.
            if await self.is_awake(order.runtime):
                raise NobodyListens(f"nothing listens on port {address[1]} in the sandbox") from error
            raise
        except BrokenOff as error:
            raise ProgramBrokeOff(error.message) from error

    async def _leased(self, body: Body, order: Order, exchange: Exchange) -> web.StreamResponse:
        for attempt in range(ATTEMPTS):
            await self.keep_awake(order.runtime, attempt=attempt)
            async with self._connection(order) as lease:
                # Connecting may have taken longer than the runtime has promised to be there.
                if self._leases.holds(order.runtime.pod_uid):
                    return await self._exchange(body, order, exchange, lease)
                lease.reusable = True
        raise PodLeaving("the sandbox's pod is too slow to be sure that it stays awake for this")

    def _connection(self, order: Order) -> AbstractAsyncContextManager[Lease]:
        if order.app is not None:
            # A program proves nothing. Whose address this is, the lease says that is asked for before.
            return self._apps.lease(order.app)
        runtime = order.runtime
        return connection_to(
            self._pool, pod_uid=runtime.pod_uid, address=runtime.address, credential=runtime.credential
        )

    async def _exchange(
        self, body: Body, order: Order, exchange: Exchange, lease: Lease
    ) -> web.StreamResponse:
        request, connection = body.request, lease.connection
        upload = Upload(body, connection, exchange=exchange, confirm=partial(self.is_awake, order.runtime))
        try:
            message, payload = await _ask(body, order, lease, upload)
            already = b"" if order.app else await unless_refused(message, payload)
            body.keep_no_more()
            if message.code == 101:
                if not order.upgrade:
                    raise BrokenOff("the sandbox switched protocols without being asked to")
                exchange.status, exchange.answered = message.code, perf_counter()
                return await tunnel(
                    request, connection, message, exchange=exchange, to_client=order.to_client
                )
            relay = Relay(request, message, exchange=exchange, to_client=order.to_client)
            exchange.status, exchange.answered = message.code, perf_counter()
            exchange.reason = await relay.run(payload, already=already)
            lease.reusable = relay.complete and upload.complete
            return relay
        finally:
            await upload.stop()


def _is_safe(body: Body, order: Order) -> bool:
    return body.request.method in _SAFE and not order.upgrade


async def _ask(
    body: Body, order: Order, lease: Lease, upload: Upload
) -> tuple[RawResponseMessage, StreamReader]:
    expect_answer(lease.connection, without_body=body.request.method == hdrs.METH_HEAD)
    try:
        await upload.start(_head(body, order))
        return await answer_of(lease.connection)
    except LOST as error:
        upload.raise_if_failed()
        if _is_safe(body, order) and order.app is None:
            raise PodLeaving(
                "the sandbox's pod broke off before it answered; it may just have gone away"
            ) from error
        if _is_safe(body, order) and body.resendable and not lease.fresh:
            raise Stale("the program has closed the connection that was kept for it") from error
        raise BrokenOff(
            f"the sandbox's {'program' if order.app else 'pod'} broke off before it answered: what you asked "
            "for may have been done, in part or in whole, or not at all"
        ) from error


def _head(body: Body, order: Order) -> bytes:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n" if order.upgrade else b""
    return b"".join(
        (
            body.request.method.encode() + b" " + order.target + b" HTTP/1.1\r\n",
            *order.lines,
            body.header,
            upgrade,
            b"\r\n",
        )
    )
