"""What stands behind a gateway in its tests: runtimes and users' programs on ports of loopback, by the pod
IPs that they pretend to have.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web
from sandpod_crds import keys
from sandpod_gateway.addresses import Address, Addressing

from .gateway_api_server import ApiServer
from .gateway_raw_runtime import RawRuntime

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

KEY = b"k" * 32
# Of loopback: nobody listens there.
_CLOSED = 1


class Upstreams:
    def __init__(self) -> None:
        self.api = ApiServer()
        # Which port of loopback stands for the runtime of a pod's IP
        self.targets: dict[str, int] = {}
        self.address_of: Callable[[str], Address] = lambda ip: ("127.0.0.1", self.targets[ip])
        # The same for a program's port there; one that is not here is closed.
        self.programs: dict[tuple[str, int], int] = {}
        self._stack = contextlib.AsyncExitStack()

    @property
    def addressing(self) -> Addressing:
        return Addressing(
            control=lambda ip: self.address_of(ip),
            app=lambda ip, port: ("127.0.0.1", self.programs.get((ip, port), _CLOSED)),
        )

    async def runtime(self, handler: Handler, *, ip: str = "10.0.0.1") -> web.Server:
        """A runtime by aiohttp: the handler sees the raw request. Proofs and leases are given before it."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            if request.path == "/api/prove":
                return web.json_response({"proof": self.proof(request.query["nonce"], ip=ip)})
            if request.path == "/api/lifecycle/lease":
                return web.json_response({"phase": "running"})
            return await handler(request)

        place = _place()
        self.targets[ip] = place.getsockname()[1]
        return await self._serve(handle, place)

    async def raw_runtime(self, *, ip: str = "10.0.0.1", **values: Any) -> RawRuntime:
        """One that records bytes."""
        values.setdefault("proof", partial(self.proof, ip=ip))
        runtime = await self._serve_raw(RawRuntime(**values))
        self.targets[ip] = runtime.port
        return runtime

    def not_listening(self, *, port: int = 8080, ip: str = "10.0.0.1") -> socket.socket:
        """The place of a program that is to come: whoever connects to it is refused."""
        place = _place()
        self.programs[ip, port] = place.getsockname()[1]
        self._stack.callback(place.close)
        return place

    async def program(
        self,
        handler: Handler,
        *,
        port: int = 8080,
        ip: str = "10.0.0.1",
        place: socket.socket | None = None,
    ) -> web.Server:
        """A user's program in the pod with this address: the handler sees the raw request."""
        return await self._serve(handler, place or self.not_listening(port=port, ip=ip))

    async def raw_program(self, *, port: int = 8080, ip: str = "10.0.0.1", **values: Any) -> RawRuntime:
        """The same, and it records bytes."""
        program = await self._serve_raw(RawRuntime(**values))
        self.programs[ip, port] = program.port
        return program

    def proof(self, nonce: str, *, ip: str = "", pod_uid: str | None = None) -> str:
        """Of this pod, or of the one that the API server says to have this address."""
        here = (each["status"] for each in self.api.objects.values() if each["status"].get("podIP") == ip)
        uid = pod_uid or next((str(status["podUID"]) for status in here), "pod-uid-1")
        credential = keys.credential(key=KEY, namespace="default", pod_uid=uid)
        return keys.proof(credential=credential, nonce=nonce)

    async def _serve(self, handler: Handler, place: socket.socket) -> web.Server:
        server = web.Server(handler, access_log=None, handler_cancellation=True, auto_decompress=False)
        listening = await asyncio.get_running_loop().create_server(server, sock=place)

        async def close() -> None:
            listening.close()
            await server.shutdown(0.1)

        self._stack.push_async_callback(close)
        return server

    async def _serve_raw(self, upstream: RawRuntime) -> RawRuntime:
        place = _place()
        upstream.port = place.getsockname()[1]
        listening = await asyncio.start_server(upstream.accept, sock=place)
        self._stack.push_async_callback(upstream.close)
        self._stack.callback(listening.close)
        return upstream


def _place() -> socket.socket:
    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    return place
