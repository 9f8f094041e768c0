"""A server on loopback that answers as a runtime does, or as none should, and the client that asks it."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web
from sandpod_operator.metrics import Metrics
from sandpod_operator.observations import Answer, Errand, Key
from sandpod_operator.plan import Ask
from sandpod_operator.runtime_client import RuntimeClient

from tests.support.operator_objects import KEY, NOW, POD_UID, UID

SECRET = b"k" * 32
ASK = Ask(
    errand=Errand.BIND,
    subject="10m",
    sleep_after=600,
    pod_uid=POD_UID,
    pod_name=KEY.name,
    namespace=KEY.namespace,
    ip="10.1.0.7",
    sandbox_name=KEY.name,
    sandbox_uid=UID,
    spec_hash="abc",
    env={"A": "1"},
)


class AskedRuntime:
    """Answers the bind with what a test puts here."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.binds: list[Callable[[], web.Response]] = []
        self.commands: list[Callable[[], web.Response]] = []
        self.lifecycle: Callable[[], web.Response] = lambda: web.json_response({}, status=401)
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_post("/api/bind", self._bind)
        app.router.add_get("/api/lifecycle", self._lifecycle)
        app.router.add_post("/api/lifecycle", self._command)
        app.router.add_post("/api/lifecycle/{what}", self._command)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _bind(self, request: web.Request) -> web.Response:
        self.requests.append(("bind", dict(request.headers), await request.json()))
        answer = self.binds[0] if len(self.binds) == 1 else self.binds.pop(0)
        return answer()

    async def _command(self, request: web.Request) -> web.Response:
        what = request.match_info.get("what", "")
        self.requests.append((what, dict(request.headers), await request.json()))
        return self.commands.pop(0)()

    async def _lifecycle(self, request: web.Request) -> web.Response:
        self.requests.append(("lifecycle", dict(request.headers), None))
        return self.lifecycle()


class Asking:
    def __init__(self, runtime: AskedRuntime) -> None:
        self.runtime = runtime
        self.metrics = Metrics()
        self.answers: asyncio.Queue[tuple[Key, Answer]] = asyncio.Queue()
        # What the API server says in turn of whether the pod is there
        self.pods: list[bool] = []
        self.attempts: asyncio.Queue[str] = asyncio.Queue()
        self.client = self.client_to(self._where)

    def client_to(self, where: Callable[[str], str | None] | None) -> RuntimeClient:
        """Another one, which finds its pods in another way; None: as in a cluster."""
        return RuntimeClient(
            key=SECRET,
            answered=lambda key, answer: self.answers.put_nowait((key, answer)),
            metrics=self.metrics,
            now=lambda: NOW,
            is_there=self.is_there,
            where=where,
        )

    async def is_there(self, ask: Ask) -> bool:
        return self.pods.pop(0) if self.pods else True

    def _where(self, ip: str) -> str:
        self.attempts.put_nowait(ip)
        return f"127.0.0.1:{self.runtime.port}"

    async def answer(self) -> Answer:
        key, answer = await asyncio.wait_for(self.answers.get(), timeout=10)
        assert key == KEY
        return answer


def says(status: int, body: Any) -> Callable[[], web.Response]:
    return lambda: web.json_response(body, status=status)
