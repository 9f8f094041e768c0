"""A real HAProxy on loopback with the gateway's own configuration, and beside it a program in a "pod", the
Python process behind its socket, and the fast path that steers it.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandpod_gateway.addresses import Address
from sandpod_gateway.errors import PodLeaving
from sandpod_gateway.fastpath.admin import Admin
from sandpod_gateway.fastpath.path import FastPath
from sandpod_gateway.leases import Leases
from sandpod_gateway.metrics import Metrics
from sandpod_gateway.proxy import Runtime
from sandpod_gateway.routes import ExposedPort, Key, Route, RouteTable

from tests.support.ports import held_place

Json = dict[str, Any]

# What programs send besides, by the path
HEADERS = {
    b"/headers": b"Set-Cookie: a=b; Domain=sandpod.localhost\r\n"
    b"Set-Cookie: __Host-Sandpod=x\r\nSet-Cookie: =__Host-sandpod=nameless\r\n"
    b"Set-Cookie: ==__host-sandpod=x\r\nSet-Cookie: __Host-sandpod; Secure\r\nSet-Cookie: mine=1\r\n"
    b"X-Sandpod-Credential: secret\r\nKeep-Alive: timeout=5\r\n",
    b"/policy": b"Referrer-Policy: origin\r\n",
    b"/nul": b"X: a\0b\r\n",
}

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "gateway/haproxy"
KEY: Key = ("default", "hello")
PORT = ExposedPort(port=8000, private=False, token_version=1)
HOST = "8000-hello-aaaaaaaaaaaaaaaaaaaa.sandpod.localhost"
READ_SECONDS = 10.0
# It outlasts a test on a busy machine; whoever tests its end takes the brief one, as real sandboxes have.
LONG_LEASE, BRIEF_LEASE = 20.0, 2.0


def program(name: str) -> str:
    """Where a program of Debian's is, fetched if need be."""
    command = [ROOT / "hack/tools/debian.sh", name]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout.strip()


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(READ_SECONDS):
        while not check():  # noqa: ASYNC110 - what others do has no event
            await asyncio.sleep(0.02)


class HAProxy:
    """One process of it; its sockets are in `folder`."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self._places = [held_place() for _ in range(2)]
        self.port, self.health_port = (each.getsockname()[1] for each in self._places)
        own = {
            "HAPROXY": program("haproxy"),
            "SANDPOD_SOCKETS": str(folder),
            "SANDPOD_BIND": f"127.0.0.1:{self.port}",
            "SANDPOD_HEALTH_BIND": f"127.0.0.1:{self.health_port}",
            "SANDPOD_DRAIN_DELAY": "0",
        }
        self._audit = folder / "audit"
        self._environment = {**os.environ, **own, **variables}
        self.process = self._spawn()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        with self._audit.open("ab") as audit:
            # A group of its own: the script and HAProxy end together.
            return subprocess.Popen(
                [FOLDER / "run"], env=self._environment, stdout=audit, start_new_session=True
            )

    async def listening(self) -> None:
        async with asyncio.timeout(READ_SECONDS):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.health_port)
                    writer.close()
                    return
                await asyncio.sleep(0.02)

    async def restart(self) -> None:
        self._end()
        # The script has ended; HAProxy itself takes a moment more, in which it would still accept.
        await until(lambda: not self._is_there())
        self.process = self._spawn()
        await self.listening()

    def _is_there(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self._end()
        for each in self._places:
            each.close()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.process.wait()

    @property
    def admin(self) -> Admin:
        return Admin(socket=str(self.folder / "admin.sock"), map_file=str(FOLDER / "hosts.map"))

    def audit_lines(self) -> list[Json]:
        return [json.loads(line) for line in self._audit.read_text("utf-8").splitlines()]

    async def ask(self, request: bytes, *, source: str = "127.0.0.1") -> bytes:
        """All that comes back on a connection of its own, which the request has to end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))
        try:
            writer.write(request)
            async with asyncio.timeout(READ_SECONDS):
                return await reader.read()
        finally:
            writer.close()

    async def get(
        self, path: str = "/", *, host: str = HOST, headers: str = "", source: str = "127.0.0.1"
    ) -> bytes:
        """`headers` are whole lines."""
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        return await self.ask(head.encode(), source=source)


@dataclass
class Server:
    """Answers each request with its name; `heads` are those that came. A path tells what else it does."""

    name: bytes
    heads: list[bytes] = field(default_factory=list[bytes])
    release: asyncio.Event = field(default_factory=asyncio.Event)
    # Streams whose other end has gone
    ended: int = 0
    connections: int = 0
    accepted: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.accepted += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    self.heads.append(head)
                    await self._answer(head, reader, writer)
                    await writer.drain()
        finally:
            writer.close()
            self.connections -= 1

    async def _answer(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = head.split(b" ")[1]
        if path == b"/wait":
            await self.release.wait()
        if path == b"/break":
            raise ConnectionError
        if b"\r\nupgrade: websocket\r\n" in head:
            # What a handshake of RFC 6455 is answered with to the key that `websocket` sends
            accept = b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
            switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            writer.write(switch + accept + b"\r\n")
            while data := await reader.read(65_536):
                writer.write(data)
            self.ended += 1
            raise ConnectionError
        if path == b"/continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.name = await reader.readexactly(4)
        if path == b"/drip":
            # As an event stream does: a piece, and the rest much later.
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            await self.release.wait()
            writer.write(b"4\r\nlast\r\n0\r\nX-Trailer: end\r\n\r\n")
            return
        if b"\r\ntransfer-encoding: chunked\r\n" in head:
            self.name = await reader.readuntil(b"0\r\n\r\n")
        extra = HEADERS.get(path, b"")
        length = b"Content-Length: %d\r\n\r\n" % len(self.name)
        body = b"" if head.startswith(b"HEAD ") else self.name
        status = b"404 Not Found" if path == b"/unknown" else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + extra + length + body)


class World:
    def __init__(
        self, haproxy: HAProxy, pod: Server, address: Address, python: Server, *, lease_seconds: float
    ) -> None:
        self.haproxy, self.pod, self.address, self.python = haproxy, pod, address, python
        self.table = RouteTable()
        self.route = Route(
            uid="u", phase="Running", ready=True, pod_ip="10.0.0.1", pod_uid="p", ports=(PORT,)
        )
        self.table.put(KEY, self.route)
        self.metrics = Metrics(gauges={})
        self.leases_asked = 0
        self.grants = True
        self.runtime = Runtime(address=("10.0.0.1", 3000), pod_uid="p", credential="c")
        self.leases = Leases(ask=self._grant, seconds=lease_seconds, metrics=self.metrics)
        self.fast = FastPath(
            admin=haproxy.admin,
            leases=self.leases,
            lease_seconds=lease_seconds,
            table=self.table,
            metrics=self.metrics,
        )
        self.steering = asyncio.create_task(self.fast.run())

    async def _grant(self, *, pod_uid: str, address: Address, credential: str, seconds: float) -> None:
        self.leases_asked += 1
        if not self.grants:
            raise PodLeaving("going to sleep")

    async def open(self, host: str = HOST, *, key: Key = KEY) -> None:
        """As after a request that was served in Python; returns when HAProxy knows of it."""
        if self.table.get(key) is None:
            self.table.put(key, self.route)
        before = len(self.pod.heads)
        async with asyncio.timeout(READ_SECONDS):
            while True:
                await self.leases.ensure(pod_uid="p", address=self.runtime.address, credential="c")
                self.fast.served(
                    host=host,
                    key=key,
                    route=self.route,
                    port=PORT,
                    runtime=self.runtime,
                    address=self.address,
                )
                await self.haproxy.get("/opened", host=host)
                if len(self.pod.heads) > before:
                    self.pod.heads.clear()
                    self.python.heads.clear()
                    return
                # So many as could be asked meanwhile would be more than one preview may.
                await asyncio.sleep(0.01)

    async def websocket(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection after the handshake, on which the program sends back what it gets."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.haproxy.port)
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        upgrade = f"Connection: Upgrade\r\nUpgrade: websocket\r\n{key}"
        writer.write(f"GET /ws HTTP/1.1\r\nHost: {HOST}\r\n{upgrade}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101"), head
        return reader, writer


@contextlib.asynccontextmanager
async def world(*, lease_seconds: float = LONG_LEASE, **variables: str) -> AsyncGenerator[World]:
    pod, python = Server(b"pod"), Server(b"python")
    # Not pytest's own folder: a socket's path has 107 characters.
    with tempfile.TemporaryDirectory(prefix="sandpod-") as name:
        folder = Path(name)
        async with (
            await asyncio.start_server(pod.serve, "127.0.0.1", 0) as program_socket,
            await asyncio.start_unix_server(python.serve, folder / "web.sock"),
        ):
            haproxy = HAProxy(folder, **variables)
            try:
                await haproxy.listening()
                address: Address = program_socket.sockets[0].getsockname()[:2]
                built = World(haproxy, pod, address, python, lease_seconds=lease_seconds)
                try:
                    yield built
                finally:
                    built.steering.cancel()
                    await asyncio.gather(built.steering, return_exceptions=True)
            finally:
                haproxy.kill()
                pod.release.set()
                await until(lambda: not pod.connections and not python.connections)
