"""A real gateway on loopback with real TLS, between a small API server and runtimes of the test's own."""

import asyncio
import contextlib
import io
import json
import ssl
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from sandpod_crds import keys
from sandpod_crds.previews import PreviewAddress, Site
from sandpod_gateway.audit import Audit
from sandpod_gateway.gateway import Gateway
from sandpod_gateway.routes import Route
from sandpod_gateway.settings import Settings
from yarl import URL

from .gateway_api_server import sandbox
from .gateway_certificates import Authority, Issued, plain_client_context
from .gateway_upstreams import KEY, Upstreams
from .gateway_visitors import JANES

Json = dict[str, Any]

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


class Harness(Upstreams):
    def __init__(self) -> None:
        super().__init__()
        self.serving_ca = Authority("serving-ca")
        self.front_proxy_ca = Authority("front-proxy-ca")
        self.log = io.StringIO()
        self.stop = asyncio.Event()
        self.gateway: Gateway
        self.session: aiohttp.ClientSession
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
            addressing=self.addressing,
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
        headers = {**JANE, **(headers or {})}
        return await _ask(session or self.session, method, self.url + path, headers=headers, **options)

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
        """What comes back for these bytes."""
        reader, writer = await self.connect()
        return await _answer_to(data, reader, writer)

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
        headers = {"Host": host, **(headers or {})}
        async with _stranger() as session:
            return await _ask(session, method, self.v1_url + path, headers=headers, **options)

    async def raw_preview(self, data: bytes) -> bytes:
        """What comes back for these bytes at the previews' port."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.http_port)
        return await _answer_to(data, reader, writer)

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
        headers = ({"Authorization": f"Bearer {token}"} if token else {}) | (headers or {})
        async with _stranger() as session:
            return await _ask(session, method, self.v1_url + path, headers=headers, **options)

    @property
    def v1_url(self) -> str:
        return f"http://127.0.0.1:{self.gateway.http_port}"

    def audit_lines(self) -> list[Json]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    async def metrics(self) -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.gateway.metrics_port}/metrics") as response,
        ):
            return await response.text()


def _stranger() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())


async def _ask(session: aiohttp.ClientSession, method: str, url: str, **options: Any) -> Answer:
    """The path goes out as it is written."""
    asked = session.request(method, URL(url, encoded=True), allow_redirects=False, **options)
    async with asked as response:
        return Answer(response.status, response.headers, await response.read())


async def _answer_to(data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Until the other side closes, or falls silent after an answer."""
    writer.write(data)
    answer = bytearray()
    with contextlib.suppress(TimeoutError, ConnectionError):
        while piece := await asyncio.wait_for(reader.read(65536), 0.2 if answer else 5):
            answer += piece
    writer.close()
    return bytes(answer)


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
