"""Connections to runtimes: bounded per sandbox and in all, kept for the next request for some seconds. Built
on aiohttp's client protocol and not on its session, for reasons that stand in
docs/decisions/0003-own-upstream-connections.md.
"""

import asyncio
import contextlib
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import ClientPayloadError
from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import StreamReader
from sandpod_crds.keepalive import watch_over

from .addresses import Address
from .errors import NotReady, TooMany, Unreachable

# Shorter than any server keeps an idle connection: a request on one that is just being closed has an unknown
# fate.
IDLE_SECONDS: Final = 10.0
MAX_IDLE_PER_ADDRESS: Final = 16

# A pod whose node has died takes nothing more. Streams have no time-out, so the kernel has to find out.
_UNTAKEN_MS: Final = 35_000


class Connection(ResponseHandler):
    """`reading` is the body that somebody is waiting for. `proved` is the UID of the pod whose runtime the
    other end has shown itself to be.
    """

    reading: StreamReader | None = None
    proved: str = ""

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        # aiohttp ends a body whose connection is lost, but not one whose next chunk was nonsense: without
        # this its reader would wait for ever.
        body, self.reading = self.reading, None
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(ClientPayloadError("the connection was lost in the middle of the answer"))


@dataclass(slots=True)
class Lease:
    """One connection for one request. Whoever has read the answer to its end sets `reusable`."""

    connection: Connection
    reusable: bool = False
    # Nothing has been sent on it before: it is not one that the other side was just about to close.
    fresh: bool = True


class Pool:
    def __init__(
        self,
        *,
        per_address: int,
        total: int,
        connect_timeout: float,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_address = per_address
        self._total = total
        self._connect_timeout = connect_timeout
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._busy: Counter[Address] = Counter()
        # Of all addresses together
        self.busy = 0
        self._idle: dict[Address, list[tuple[float, Connection]]] = {}

    @property
    def idle(self) -> int:
        return sum(len(connections) for connections in self._idle.values())

    @contextlib.asynccontextmanager
    async def lease(self, address: Address) -> AsyncGenerator[Lease, None]:
        self._enter(address)
        try:
            connection = self._take_idle(address)
            # Not `or`: aiohttp's protocol is also a queue, and an empty queue counts as false.
            fresh = connection is None
            lease = Lease(await self._connect(address) if connection is None else connection, fresh=fresh)
            try:
                yield lease
            finally:
                self._give_back(address, lease)
        finally:
            self._leave(address)

    def sweep(self) -> None:
        """Closes what has been idle for too long; called every few seconds."""
        oldest = self._clock() - self._idle_seconds
        for address, connections in list(self._idle.items()):
            kept: list[tuple[float, Connection]] = []
            for since, connection in connections:
                if since > oldest and connection.is_connected():
                    kept.append((since, connection))
                else:
                    connection.close()
            if kept:
                self._idle[address] = kept
            else:
                del self._idle[address]

    def forget(self, address: Address) -> None:
        """The connections that are kept to it are worth nothing any more."""
        for _, connection in self._idle.pop(address, ()):
            connection.close()

    def close(self) -> None:
        for address in list(self._idle):
            self.forget(address)

    def _enter(self, address: Address) -> None:
        if self._busy[address] >= self._per_address:
            raise TooMany(
                f"{self._per_address} requests to this sandbox are under way here, and more are not taken: "
                "wait for one of them to end",
                retry_after=1,
            )
        if self.busy >= self._total:
            raise NotReady(
                f"the gateway has {self._total} requests under way and takes no more for the moment"
            )
        self._busy[address] += 1
        self.busy += 1

    def _leave(self, address: Address) -> None:
        self.busy -= 1
        self._busy[address] -= 1
        if not self._busy[address]:
            del self._busy[address]

    def _take_idle(self, address: Address) -> Connection | None:
        connections = self._idle.get(address)
        oldest = self._clock() - self._idle_seconds
        while connections:
            since, connection = connections.pop()
            # `should_close` is also set by bytes that nobody asked for: an answer must not wait for its
            # question.
            if since > oldest and connection.is_connected() and not connection.should_close:
                return connection
            connection.close()
        return None

    def _give_back(self, address: Address, lease: Lease) -> None:
        connection = lease.connection
        if lease.reusable and connection.is_connected() and not connection.should_close:
            connections = self._idle.setdefault(address, [])
            if len(connections) < MAX_IDLE_PER_ADDRESS:
                connections.append((self._clock(), connection))
                return
        # At once, whatever is still unsent: the runtime ends a command whose caller has hung up.
        connection.abort()

    async def _connect(self, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                transport, protocol = await loop.create_connection(lambda: Connection(loop), *address)
        except (TimeoutError, OSError) as error:
            # Not a byte of the request has left: whoever repeats it does no harm.
            raise Unreachable(
                "the sandbox's pod does not accept connections; it may just have gone away"
            ) from error
        sock: socket.socket = transport.get_extra_info("socket")
        watch_over(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN_MS)
        return protocol
