"""A small Kubernetes API server: the few endpoints that the SDK speaks to, over a real socket.

What comes for a sandbox goes on to a real runtime, as the API server and the gateway pass it on together.
Tests play the operator's part with `set_status`.
"""

import asyncio
import io
import json
import ssl
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import aiohttp
from aiohttp import web

from tests.support import api_ports
from tests.support.api_objects import Json, Refused, Store, is_ready, obeyed, ready_status, status, table

Result = TypeVar("Result")

BASE = "/apis/sandpod.dev/v1alpha1"
RUN = "/apis/run.sandpod.dev/v1alpha1"
KNOWN_FIELDS = {
    *("image", "env", "resources", "sleepAfter", "keepAlive", "ports", "templateRef", "poolRef", "workspace"),
    *("setup", "processes", "network", "paused"),
}


@dataclass
class ApiServer:
    """What a test may change is plain attributes and the methods."""

    tls: ssl.SSLContext | None = None
    # Where the sandboxes' runtime listens.
    runtime: str | None = None
    # Who may come in; None: anybody.
    tokens: set[str] | None = None
    # "verb resource" that is refused, such as "create sandboxes/exec".
    forbidden: set[str] = field(default_factory=set[str])
    installed: bool = True
    # Makes each new sandbox Ready at once, and does at once what a change asks for.
    operator: bool = True
    # The answer to everything, for a server that is something else.
    nonsense: object = None
    # Something else holds on to what is deleted.
    finalizers: bool = False
    # How often the gateway still refuses a sandbox that is Ready: it learns of it by a watch of its own.
    gateway_is_late: int = 0
    requests: list[tuple[str, str, dict[str, str]]] = field(
        default_factory=list[tuple[str, str, dict[str, str]]]
    )
    url: str = ""

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._store = Store()
        self._streams: list[asyncio.Transport] = []

    def __enter__(self) -> "ApiServer":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def add(self, name: str, *, namespace: str = "default", ready: bool = True) -> Json:
        return self._do(lambda: self._store.create(namespace, {"metadata": {"name": name}}, ready=ready))

    def get(self, name: str, *, namespace: str = "default") -> Json | None:
        return self._do(lambda: self._store.objects.get((namespace, name)))

    def set_status(self, name: str, *, namespace: str = "default", **content: Any) -> None:
        """The operator's word: phase, ready, reason, message, and other conditions by their type."""
        self._do(lambda: self._store.write(self._store.objects[namespace, name], ready_status(**content)))

    def remove(self, name: str, *, namespace: str = "default") -> None:
        self._do(lambda: self._store.delete(namespace, name))

    def expire(self) -> None:
        """Watches that run are ended with 410, and so is one that begins before now."""
        self._do(self._store.expire)

    def end_watches(self) -> None:
        """Ends the watches that run without a word, as an API server does from time to time."""
        self._do(self._store.end_watches)

    def break_streams(self) -> None:
        """Breaks off what is on its way from a runtime, as a gateway does that dies."""
        self._do(lambda: [connection.abort() for connection in self._streams])

    def asked(self, method: str, part: str = "") -> int:
        """How many requests of this kind there were."""
        return self._do(lambda: sum(1 for verb, path, _ in self.requests if verb == method and part in path))

    def _do(self, action: Callable[[], Result]) -> Result:
        done: Future[Result] = Future()

        def run() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result(10)

    async def _start(self) -> None:
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        app = web.Application(middlewares=[self._answer], client_max_size=1 << 27)
        app.router.add_get("/version", self._version)
        app.router.add_get(RUN, self._discovery)
        app.router.add_route("*", RUN + "/namespaces/{ns}/sandboxes/{name}/proxy/{path:.*}", self._proxy)
        beside = "/namespaces/{ns}/sandboxes/{name}/{beside:sleep|ports.*}"
        app.router.add_route("*", RUN + beside, self._beside)
        for collection in (BASE, BASE + "/namespaces/{ns}"):
            app.router.add_get(collection + "/sandboxes", self._list)
        app.router.add_post(BASE + "/namespaces/{ns}/sandboxes", self._post)
        app.router.add_get(BASE + "/namespaces/{ns}/sandboxes/{name}", self._get)
        app.router.add_patch(BASE + "/namespaces/{ns}/sandboxes/{name}", self._patch)
        app.router.add_delete(BASE + "/namespaces/{ns}/sandboxes/{name}", self._delete)
        # Cancelled handlers are how a client that hangs up reaches the runtime behind.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls).start()
        port: int = self._runner.addresses[0][1]
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{port}"

    async def _stop(self) -> None:
        self._store.end_watches()
        await self._http.close()
        await self._runner.cleanup()

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs, dict(request.headers)))
        try:
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if self.tokens is not None and token not in self.tokens:
                raise Refused(status(401, "Unauthorized", "Unauthorized"))
            if not self.installed and request.path != "/version":
                raise Refused(status(404, "NotFound", "the server could not find the requested resource"))
            if self.nonsense is not None:
                return web.json_response(self.nonsense)
            return await handler(request)
        except Refused as refusal:
            return web.json_response(refusal.body, status=refusal.body["code"], headers=refusal.headers)

    def _authorize(self, request: web.Request, verb: str, resource: str = "sandboxes") -> None:
        if f"{verb} {resource}" in self.forbidden:
            namespace = request.match_info.get("ns")
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            raise Refused(
                status(
                    403,
                    "Forbidden",
                    f'{resource}.sandpod.dev is forbidden: User "jane" cannot {verb} resource "{resource}" '
                    f'in API group "sandpod.dev" {where}',
                )
            )

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.36.0"})

    async def _discovery(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "APIResourceList", "groupVersion": "run.sandpod.dev/v1alpha1"})

    async def _post(self, request: web.Request) -> web.Response:
        self._authorize(request, "create")
        manifest: Json = await request.json()
        if unknown := set(manifest["spec"]) - KNOWN_FIELDS:
            words = f'strict decoding error: unknown field "spec.{unknown.pop()}"'
            raise Refused(status(400, "BadRequest", words))
        made = self._store.create(request.match_info["ns"], manifest, ready=self.operator)
        return web.json_response(made, status=201)

    async def _get(self, request: web.Request) -> web.Response:
        self._authorize(request, "get")
        found = self._store.found(request.match_info["ns"], request.match_info["name"])
        return web.json_response(table([found]) if wants_table(request) else found)

    async def _patch(self, request: web.Request) -> web.Response:
        self._authorize(request, "patch")
        assert request.content_type == "application/merge-patch+json"
        found = self._store.found(request.match_info["ns"], request.match_info["name"])
        self._store.patch(found, await request.json())
        answer = web.json_response(found)
        if self.operator:
            self._store.write(found, {**found.get("status", {}), **obeyed(found)})
        return answer

    async def _delete(self, request: web.Request) -> web.Response:
        self._authorize(request, "delete")
        namespace, name = request.match_info["ns"], request.match_info["name"]
        uid: str = self._store.found(namespace, name)["metadata"]["uid"]
        if (await request.json()).get("preconditions", {}).get("uid", uid) != uid:
            raise Refused(status(409, "Conflict", "the UID in the precondition does not match"))
        if self.finalizers:
            found = self._store.objects[namespace, name]
            found["metadata"]["deletionTimestamp"] = "2031-01-01T00:00:00Z"
            self._store.write(found, found.get("status", {}))
        else:
            self._store.delete(namespace, name)
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            self._authorize(request, "watch")
            return await self._watch(request)
        self._authorize(request, "list")
        namespace = request.match_info.get("ns")
        stored = sorted(self._store.objects.items())
        name = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        items = [each for key, each in stored if namespace in (None, key[0]) and name in ("", key[1])]
        # Two to a page, so that a handful of objects takes several.
        start = int(request.query.get("continue", 0))
        page, more = items[start : start + 2], len(items) > start + 2
        metadata = {"resourceVersion": self._store.version(), "continue": str(start + 2) if more else ""}
        if wants_table(request):
            return web.json_response({**table(page), "metadata": metadata})
        return web.json_response({"kind": "SandboxList", "metadata": metadata, "items": page})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        namespace = request.match_info.get("ns")
        name = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        try:
            async with asyncio.timeout(float(request.query["timeoutSeconds"])):
                async for kind, each in self._store.changes(int(request.query["resourceVersion"])):
                    metadata: Json = each.get("metadata", {})
                    here = namespace in (None, metadata.get("namespace"))
                    if kind != "ERROR" and not (here and name in ("", metadata["name"])):
                        continue
                    shown = table([each]) if wants_table(request) and kind != "ERROR" else each
                    line = json.dumps({"type": kind, "object": shown}).encode() + b"\n"
                    # In two pieces, as a network may do at any time.
                    await response.write(line[:20])
                    await asyncio.sleep(0)
                    await response.write(line[20:])
        except TimeoutError:
            pass
        return response

    async def _beside(self, request: web.Request) -> web.Response:
        return await api_ports.beside(
            request, self._store.found(request.match_info["ns"], request.match_info["name"]), self._store
        )

    async def _proxy(self, request: web.Request) -> web.StreamResponse:
        self._authorize(request, "create", "sandboxes/exec")
        name = request.match_info["name"]
        found = self._store.found(request.match_info["ns"], name)
        if not is_ready(found) or self.gateway_is_late > 0:
            self.gateway_is_late -= is_ready(found)
            phase = found.get("status", {}).get("phase", "Pending")
            words = f'sandbox "{name}" is not ready (phase {phase})'
            refusal = status(503, "ServiceUnavailable", words, name=name, kind="sandboxes")
            raise Refused(refusal, **{"Retry-After": "1"})
        if self.runtime is None:
            return web.Response(status=503, text="error trying to reach service: connection refused")
        headers = {"Content-Type": "application/json"}
        url = f"{self.runtime}/{request.match_info['path']}?{request.query_string}"
        body = io.BytesIO(await request.read()) if request.method == "POST" else None
        async with self._http.request(request.method, url, data=body, headers=headers) as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(request)
            if request.transport is not None:
                self._streams.append(request.transport)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            return response


def wants_table(request: web.Request) -> bool:
    return "as=Table" in request.headers.get("Accept", "")
