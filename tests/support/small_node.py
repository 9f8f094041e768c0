"""What the operator's tests over HTTP need of a cluster besides its API server: a kubelet whose pods run at
once, the runtimes that listen in them, and the garbage collector.
"""

import asyncio
from typing import Any

from aiohttp import web
from sandpod_crds.keys import proof
from sandpod_operator.objects import Json, owner_uid, section, uid_of
from sandpod_operator.times import format_time

from tests.support.operator_node import container
from tests.support.watched_api_server import WatchedApiServer


class SmallNode:
    def __init__(self, server: WatchedApiServer) -> None:
        self._server = server
        self._api = server.api
        # While set, what belongs to nobody stays.
        self.collector_rests = False
        # By their pods' addresses: what each runtime was bound with, once for each that binds it
        self.bound: dict[str, list[Json]] = {}
        self._pods = 0
        self._runner: web.ServerRunner | None = None
        self._task: asyncio.Task[None] | None = None
        self._port = 0

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    def where(self, ip: str) -> str:
        """What a URL needs to reach the runtime at this address of a pod."""
        return f"127.0.0.1:{self._port}/{ip}"

    def collect(self) -> None:
        """What the garbage collector does."""
        owners = {uid_of(each) for each in self._api.objects.values()}
        for path, obj in list(self._api.objects.items()):
            owner = owner_uid(obj) if obj.get("kind") != "Event" else None
            if owner is not None and owner not in owners:
                self._api.vanish(path)

    async def _run(self) -> None:
        while True:
            for path, obj in list(self._api.objects.items()):
                if obj.get("kind") == "Pod":
                    self._tend(path, obj)
            if not self.collector_rests:
                self.collect()
            await self._server.news()

    def _tend(self, path: str, pod: Json) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            self._api.vanish(path)
        elif not section(pod, "spec").get("nodeName"):
            self._pods += 1
            now = format_time(self._api.now())
            conditions = [
                {"type": kind, "status": "True", "lastTransitionTime": now}
                for kind in ("PodScheduled", "ContainersReady", "Ready")
            ]
            state = {"running": {"startedAt": now}}
            status = {"phase": "Running", "podIP": f"10.1.0.{self._pods}", "conditions": conditions}
            status["containerStatuses"] = container(pod, state)
            self._api.change(path, {"spec": {"nodeName": "node-1"}, "status": status})

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        _, ip, _, tail = request.path.split("/", 3)
        if not self._runs(ip):
            return web.Response(status=502)
        bound = self.bound.setdefault(ip, [])
        if tail == "bind":
            bound.append(await request.json())
        elif tail == "prove":
            said: Any = proof(credential=bound[-1]["credential"], nonce=request.query["nonce"])
            return web.json_response({"proof": said})
        return web.json_response({"runtimeVersion": "0.1.0"})

    def _runs(self, ip: str) -> bool:
        return any(section(each, "status").get("podIP") == ip for each in self._api.objects.values())
