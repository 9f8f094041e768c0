"""A real gateway on loopback with real TLS, between a small API server and runtimes of the test's own."""

import asyncio
import contextlib
import io
import json
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web
from sandpod_crds import keys
from sandpod_crds.previews import PreviewAddress, Site
from sandpod_gateway.addresses import Address
from sandpod_gateway.audit import Audit
from sandpod_gateway.gateway import Gateway
from sandpod_gateway.preview import Addressing
from sandpod_gateway.routes import Route
from sandpod_gateway.settings import Settings
from yarl import URL

from .gateway_api_server import ApiServer, sandbox
from .gateway_certificates import Authority, Issued, plain_client_context
from .gateway_raw_runtime import RawRuntime
from .gateway_visitors import JANES

Json = dict[str, Any]
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

KEY = b"k" * 32
# Of loopback: nobody listens there.
CLOSED = 1
FRONT_PROXY = "front-proxy-client"
DNS = ("sandpod-gateway.sandpod-system.svc",)
PREFIX = "/apis/run.sandpod.dev/v1alpha1"
JANE = {"X-Remote-User": "jane", "X-Remote-Group": "system:authenticated"}


def proxy_path(name: str, path: str = "/api/execute", *, namespace: str = "default") -> str:
    return f"{PREFIX}/namespaces/{namespace}/sandboxes/{name}/proxy{path}"


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Json:
        return json.loads(self.body)


class Harness:
    """`targets` says which port of loopback stands for a pod's IP."""

    def __init__(self) -> None:
        self.api = ApiServer()
        self.serving_ca = Authority("serving-ca")
        self.front_proxy_ca = Authority("front-proxy-ca")
        self.targets: dict[str, int] = {}
        self.address_of: Callable[[str], Address] = lambda ip: ("127.0.0.1", self.targets[ip])
        # The same for a program's port there; one that is not here is closed.
        self.programs: dict[tuple[str, int], int] = {}
        self.log = io.StringIO()
        self.stop = asyncio.Event()
        self.gateway: Gateway
        self.session: aiohttp.ClientSession
        self._stack = contextlib.AsyncExitStack()
        self.api.authentication = self.authentication(self.front_proxy_ca)
        self.api.secrets["sandpod-key"] = {"key": KEY}
        self.renew_certificate()

    @staticmethod
    def authentication(authority: Authority) -> dict[str, str]:
        return {
            "requestheader-client-ca-file": authority.pem,
            "requestheader-allowed-names": json.dumps([FRONT_PROXY]),
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        }

    def renew_certificate(self) -> Issued:
        issued = self.serving_ca.issue(DNS[0], dns=DNS)
        pair = {"tls.crt": issued.certificate.encode(), "tls.key": issued.key.encode()}
        self.api.secrets["sandpod-gateway-tls"] = pair
        return issued

    async def start_api(self) -> None:
        await self.api.start()
        self._stack.push_async_callback(self.api.close)

    async def start(self, **settings: Any) -> None:
        """Everything up, the gateway ready."""
        await self.start_api()
        await self.start_gateway(**settings)
        await self.until_ready()

    async def start_gateway(self, **settings: Any) -> None:
        kube = self.api.kube()
        self._stack.push_async_callback(kube.close)
        # Whatever a failed test leaves under way is cut off soon.
        values = {
            "https_port": 0,
            "http_port": 0,
            "port_wait_seconds": 0.3,
            "metrics_port": 0,
            "drain_delay_seconds": 0,
            "drain_seconds": 2,
            "wake_wait_seconds": 0.3,
            **settings,
        }
        self.gateway = Gateway(
            settings=Settings.model_validate(values),
            kube=kube,
            audit=Audit(self.log),
            addressing=Addressing(
                control=lambda ip: self.address_of(ip),
                app=lambda ip, port: ("127.0.0.1", self.programs.get((ip, port), CLOSED)),
            ),
        )
        self.running = asyncio.create_task(self.gateway.run(self.stop))
        self._stack.push_async_callback(self._finish)
        context = self.front_proxy_context()
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), auto_decompress=False
        )
        self._stack.push_async_callback(self.session.close)

    def front_proxy_context(self, name: str = FRONT_PROXY, *, by: Authority | None = None) -> ssl.SSLContext:
        issued = (by or self.front_proxy_ca).issue(name, client=True)
        return issued.client_context(trusting=self.serving_ca.pem)

    def stranger_context(self) -> ssl.SSLContext:
        return plain_client_context(trusting=self.serving_ca.pem)

    async def until_ready(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                if self.running.done():
                    await self.running
                with contextlib.suppress(aiohttp.ClientError, RuntimeError):
                    async with session.get(
                        f"http://127.0.0.1:{self.gateway.metrics_port}/readyz"
                    ) as response:
                        if response.status == 200:
                            return
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        await self._stack.aclose()

    async def _finish(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.running, 20)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.gateway.https_port}"

    async def request(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        session: aiohttp.ClientSession | None = None,
        **options: Any,
    ) -> Answer:
        """A request of Jane's, through the front proxy."""
        async with (session or self.session).request(
            method,
            URL(self.url + path, encoded=True),
            headers={**JANE, **(headers or {})},
            allow_redirects=False,
            **options,
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    def stream(self, method: str, path: str, **options: Any) -> Any:
        """The same with an answer that the test reads by itself."""
        return self.session.request(
            method, URL(self.url + path, encoded=True), headers=JANE, allow_redirects=False, **options
        )

    def websocket(self, path: str) -> Any:
        return self.session.ws_connect(URL(self.url + path, encoded=True), headers=JANE, max_msg_size=0)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection of the front proxy's."""
        port = self.gateway.https_port
        return await asyncio.open_connection("127.0.0.1", port, ssl=self.front_proxy_context())

    async def raw(self, data: bytes) -> bytes:
        """What comes back for these bytes until the gateway closes, or falls silent after an answer."""
        reader, writer = await self.connect()
        writer.write(data)
        answer = bytearray()
        with contextlib.suppress(TimeoutError, ConnectionError):
            while data := await asyncio.wait_for(reader.read(65536), 0.2 if answer else 5):
                answer += data
        writer.close()
        return bytes(answer)

    async def runtime(self, handler: Handler, *, ip: str = "10.0.0.1") -> web.Server:
        """A runtime by aiohttp: the handler sees the raw request. Proofs and leases are given before it."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            if request.path == "/api/prove":
                return web.json_response({"proof": self.proof(request.query["nonce"], ip=ip)})
            if request.path == "/api/lifecycle/lease":
                return web.json_response({"phase": "running"})
            return await handler(request)

        server = web.Server(handle, access_log=None, handler_cancellation=True, auto_decompress=False)
        listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        self.targets[ip] = listening.sockets[0].getsockname()[1]

        async def close() -> None:
            listening.close()
            await server.shutdown(0.1)

        self._stack.push_async_callback(close)
        return server

    async def raw_runtime(self, *, ip: str = "10.0.0.1", **values: Any) -> RawRuntime:
        values.setdefault("proof", partial(self.proof, ip=ip))
        runtime = RawRuntime(**values)
        listening = await asyncio.start_server(runtime.accept, "127.0.0.1", 0)
        runtime.port = self.targets[ip] = listening.sockets[0].getsockname()[1]
        self._stack.push_async_callback(runtime.close)
        self._stack.callback(listening.close)
        return runtime

    def not_listening(self, *, port: int = 8080, ip: str = "10.0.0.1") -> socket.socket:
        """The place of a program that is to come: whoever connects to it is refused."""
        place = socket.socket()
        place.bind(("127.0.0.1", 0))
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
        server = web.Server(handler, access_log=None, handler_cancellation=True, auto_decompress=False)
        place = place or self.not_listening(port=port, ip=ip)
        listening = await asyncio.get_running_loop().create_server(server, sock=place)

        async def close() -> None:
            listening.close()
            await server.shutdown(0.1)

        self._stack.push_async_callback(close)
        return server

    async def raw_program(self, *, port: int = 8080, ip: str = "10.0.0.1", **values: Any) -> RawRuntime:
        """The same, and it records bytes."""
        program = RawRuntime(**values)
        listening = await asyncio.start_server(program.accept, "127.0.0.1", 0)
        self.programs[ip, port] = listening.sockets[0].getsockname()[1]
        self._stack.push_async_callback(program.close)
        self._stack.callback(listening.close)
        return program

    async def expose(self, name: str, *ports: Json, **values: Any) -> None:
        """A sandbox with these ports, as the gateway knows it."""
        await self.api.put(sandbox(name, ports=ports, **values))
        wanted = Route.from_object(self.api.objects["default", name])
        await until(lambda: self.gateway.table.get(("default", name)) == wanted)

    def preview_host(self, name: str, *, port: int = 8080, version: int = 1) -> str:
        token = keys.preview_token(key=KEY, sandbox_uid=f"uid-of-{name}", port=port, version=version)
        return Site().host(PreviewAddress.of(port=port, sandbox=name, token=token))

    async def preview(
        self,
        method: str,
        path: str = "/",
        *,
        host: str,
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> Answer:
        """A request of anybody's to a preview's address."""
        async with (
            aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.request(
                method,
                URL(f"http://127.0.0.1:{self.gateway.http_port}{path}", encoded=True),
                headers={"Host": host, **(headers or {})},
                allow_redirects=False,
                **options,
            ) as response,
        ):
            return Answer(response.status, response.headers, await response.read())

    async def raw_preview(self, data: bytes) -> bytes:
        """What comes back for these bytes at the previews' port."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.http_port)
        writer.write(data)
        answer = bytearray()
        with contextlib.suppress(TimeoutError, ConnectionError):
            while data := await asyncio.wait_for(reader.read(65536), 0.2 if answer else 5):
                answer += data
        writer.close()
        return bytes(answer)

    async def v1(
        self,
        method: str,
        path: str,
        *,
        token: str | None = JANES,
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> Answer:
        """A request with a bearer token at the gateway's own address."""
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                method,
                URL(self.v1_url + path, encoded=True),
                headers=({"Authorization": f"Bearer {token}"} if token else {}) | (headers or {}),
                allow_redirects=False,
                **options,
            ) as response,
        ):
            return Answer(response.status, response.headers, await response.read())

    @property
    def v1_url(self) -> str:
        return f"http://127.0.0.1:{self.gateway.http_port}"

    def proof(self, nonce: str, *, ip: str = "", pod_uid: str | None = None) -> str:
        """Of this pod, or of the one that the API server says to have this address."""
        here = (each["status"] for each in self.api.objects.values() if each["status"].get("podIP") == ip)
        uid = pod_uid or next((str(status["podUID"]) for status in here), "pod-uid-1")
        credential = keys.credential(key=KEY, namespace="default", pod_uid=uid)
        return keys.proof(credential=credential, nonce=nonce)

    def audit_lines(self) -> list[Json]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    async def metrics(self) -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.gateway.metrics_port}/metrics") as response,
        ):
            return await response.text()


async def until(condition: Callable[[], bool], *, seconds: float = 5) -> None:
    """Waits for something that has no event of its own."""
    async with asyncio.timeout(seconds):
        # It happens on the other side of a socket or inside the gateway, where no event can be set.
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def harness() -> AsyncGenerator[Harness]:
    built = Harness()
    try:
        yield built
    finally:
        await built.close()
