"""A small API server over real HTTP: the endpoints that the gateway calls, and levers for its failures."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from kubernetes.aio.client.configuration import Configuration
from sandpod_crds.kube import Kube
from sandpod_crds.names import ANNOTATION_SPENT_LOGINS, ANNOTATION_WAKE

from .gateway_visitors import Visitors

Json = dict[str, Any]

SANDBOXES = "/apis/sandpod.dev/v1alpha1"


def sandbox(
    name: str,
    *,
    namespace: str = "default",
    phase: str = "Running",
    ready: bool = True,
    pod_ip: str = "10.0.0.1",
    pod_uid: str = "pod-uid-1",
    reason: str = "",
    message: str = "",
    paused: bool = False,
    wake: str = "",
    wake_observed: str = "",
    ports: tuple[Json, ...] = (),
) -> Json:
    """A Sandbox as the operator leaves it."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": reason,
        "message": message,
    }
    status: Json = {"phase": phase, "conditions": [condition]}
    if wake_observed:
        status["wakeObserved"] = wake_observed
    if pod_ip:
        status |= {"podIP": pod_ip, "podUID": pod_uid, "podName": name}
    return {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "Sandbox",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"uid-of-{name}",
            "annotations": {ANNOTATION_WAKE: wake} if wake else {},
        },
        "spec": ({"paused": True} if paused else {}) | ({"ports": list(ports)} if ports else {}),
        "status": status,
    }


class ApiServer:
    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self.secrets: dict[str, dict[str, bytes]] = {}
        self.authentication: dict[str, str] = {}
        # What RBAC says: gets the review's spec
        self.allow: Callable[[Json], bool] = lambda spec: True
        self.reviews: list[Json] = []
        # Secrets and ConfigMaps read, and requests answered 503
        self.reads = 0
        self.refused = 0
        self.lists = 0
        # The version that each watch started from
        self.watched_from: list[int] = []
        # While set, every watch ends well as soon as it has begun.
        self.watch_ends = False
        self.gets = 0
        # The values that the annotation has been given
        self.wakes: list[str] = []
        # Called with the sandbox's name after each; so many are answered 503 before
        self.woken: Callable[[str], None] = lambda name: None
        self.patches_refused = 0
        # While set, nothing comes over watches: a client that is faster than they are.
        self.watch_lags = False
        # While set, every request is answered 503.
        self.down = False
        # So many requests get their connection closed instead of an answer.
        self.hang_ups = 0
        # The oldest version that a watch may start from
        self.compacted = 0
        # Items per page, whatever the client asks for
        self.page = 500
        # Everybody with a token, which the gateway itself has none of here
        self.visitors = Visitors()
        self._versions: dict[tuple[str, str], str] = {}
        # Called before each change of ports: somebody else who is faster
        self.before_ports: Callable[[], Awaitable[None]] | None = None
        self._version = 100
        self._epoch = 0
        self._cuts = False
        self._log: list[tuple[int, Json]] = []
        self._changed = asyncio.Condition()
        self._runner: web.ServerRunner | None = None
        self.port = 0

    async def start(self) -> None:
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def kube(self) -> Kube:
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{self.port}"
        return Kube(configuration)

    async def put(self, item: Json) -> None:
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self.objects[key] = item
        await self._record(kind, item)

    async def delete(self, name: str, *, namespace: str = "default", told: bool = True) -> None:
        """Untold: the watch loses the event, as one that restarts after a compaction does."""
        item = self.objects.pop((namespace, name))
        if told:
            await self._record("DELETED", item)

    async def bookmark(self) -> None:
        await self._record("BOOKMARK", {"metadata": {}})

    async def compact(self) -> None:
        """Watches from before now are too old from here on, those that are open too."""
        self._version += 1
        self.compacted = self._version
        gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
        await self._record("ERROR", gone)

    async def hang_up(self) -> None:
        """Ends every watch that is open."""
        await self._end_watches(cut=False)

    async def cut(self) -> None:
        """The same in the middle of an answer."""
        await self._end_watches(cut=True)

    async def _end_watches(self, *, cut: bool) -> None:
        async with self._changed:
            self._epoch += 1
            self._cuts = cut
            self._changed.notify_all()

    async def _record(self, kind: str, item: Json) -> None:
        async with self._changed:
            self._version += 1
            versioned = {**item}
            if kind != "ERROR":
                versioned["metadata"] = {**item["metadata"], "resourceVersion": str(self._version)}
                key = item["metadata"].get("namespace", ""), item["metadata"].get("name", "")
                self._versions[key] = str(self._version)
            self._log.append((self._version, {"type": kind, "object": versioned}))
            self._changed.notify_all()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.down:
            self.refused += 1
            return _status(503, "ServiceUnavailable", "the API server is down")
        if self.hang_ups and request.transport is not None:
            self.hang_ups -= 1
            request.transport.abort()
        if self.visitors.are_meant(request):
            return await self.visitors.serve(request)
        return await self._serve(request)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path == f"{SANDBOXES}/sandboxes":
            if request.query.get("watch") == "true":
                return await self._watch(request)
            return self._list(request)
        if path.startswith(f"{SANDBOXES}/namespaces/"):
            return await self._one(request)
        if path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
            spec = (await request.json())["spec"]
            self.reviews.append(spec)
            allowed = self.allow(spec)
            return _json({"status": {"allowed": allowed, "reason": "" if allowed else "no rule says so"}})
        if path.startswith("/api/v1/"):
            self.reads += 1
        if path == "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication":
            return _json({"data": self.authentication})
        prefix, _, name = path.rpartition("/")
        if prefix == "/api/v1/namespaces/sandpod-system/secrets" and name in self.secrets:
            data = {key: base64.b64encode(value).decode() for key, value in self.secrets[name].items()}
            return _json({"data": data})
        return _status(404, "NotFound", f"nothing at {path}")

    async def _one(self, request: web.BaseRequest) -> web.Response:
        self.gets += request.method == "GET"
        _, namespace, _, name = request.path.removeprefix(f"{SANDBOXES}/").split("/")
        item = self.objects.get((namespace, name))
        if item is None:
            return _status(404, "NotFound", f"sandboxes {name!r} not found")
        if request.method == "PATCH":
            patch = await request.json()
            if "spec" in patch:
                return await self._patch_ports((namespace, name), patch)
            if ANNOTATION_SPENT_LOGINS in patch["metadata"]["annotations"]:
                return await self._patch_logins((namespace, name), patch)
            return await self._patch(item, patch)
        return _json(self._versioned((namespace, name)))

    def _versioned(self, key: tuple[str, str]) -> Json:
        item = self.objects[key]
        return {**item, "metadata": {**item["metadata"], "resourceVersion": self._versions[key]}}

    async def _patch_ports(self, key: tuple[str, str], patch: Json) -> web.Response:
        if self.before_ports is not None:
            await self.before_ports()
        metadata, spec = patch["metadata"], patch["spec"]
        if set(spec) != {"ports"} or not set(metadata) <= {"uid", "resourceVersion", "annotations"}:
            return _status(422, "Invalid", "that is not for the gateway")
        if metadata["resourceVersion"] != self._versions[key]:
            return _status(409, "Conflict", "somebody was faster")
        if len(spec["ports"]) > 32:
            return _status(422, "Invalid", "spec.ports: Too many: must have at most 32 items")
        item = self.objects[key]
        annotations = {**item["metadata"]["annotations"], **metadata.get("annotations", {})}
        changed_metadata = {**item["metadata"], "annotations": annotations}
        await self.put({**item, "metadata": changed_metadata, "spec": {**item["spec"], **spec}})
        return _json(self._versioned(key))

    async def _patch_logins(self, key: tuple[str, str], patch: Json) -> web.Response:
        metadata, item = patch["metadata"], self.objects[key]
        if set(patch) != {"metadata"} or set(metadata["annotations"]) != {ANNOTATION_SPENT_LOGINS}:
            return _status(422, "Invalid", "that is not for the gateway")
        if (metadata["uid"], metadata["resourceVersion"]) != (item["metadata"]["uid"], self._versions[key]):
            return _status(409, "Conflict", "somebody was faster")
        annotations = {**item["metadata"]["annotations"], **metadata["annotations"]}
        await self.put({**item, "metadata": {**item["metadata"], "annotations": annotations}})
        return _json(self._versioned(key))

    async def _patch(self, item: Json, patch: Json) -> web.Response:
        """A merge patch of the annotations, which is all that anybody patches here."""
        if self.patches_refused:
            self.patches_refused -= 1
            return _status(503, "ServiceUnavailable", "not now")
        metadata = patch["metadata"]
        if set(patch) != {"metadata"} or set(metadata) != {"uid", "annotations"}:
            return _status(422, "Invalid", "that is not for the gateway")
        if metadata["uid"] != item["metadata"]["uid"]:
            return _status(409, "Conflict", "another UID")
        annotations = {**item["metadata"]["annotations"], **metadata["annotations"]}
        self.wakes.append(annotations[ANNOTATION_WAKE])
        changed = {**item, "metadata": {**item["metadata"], "annotations": annotations}}
        await self.put(changed)
        self.woken(item["metadata"]["name"])
        return _json(changed)

    def _list(self, request: web.BaseRequest) -> web.Response:
        self.lists += 1
        items = [self.objects[key] for key in sorted(self.objects)]
        start = int(request.query.get("continue", "0"))
        metadata: Json = {"resourceVersion": str(self._version)}
        if start + self.page < len(items):
            metadata["continue"] = str(start + self.page)
        return _json({"items": items[start : start + self.page], "metadata": metadata})

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        self.watched_from.append(version)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if self.watch_ends:
            return response
        if version < self.compacted:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return response
        epoch = self._epoch
        while True:
            async with self._changed:
                await self._changed.wait_for(
                    lambda since=version: bool(self._fresh(since)) or self._epoch != epoch
                )
                events = self._fresh(version)
            if self._epoch != epoch:
                if self._cuts and request.transport is not None:
                    request.transport.abort()
                return response
            for number, event in events:
                version = number
                await response.write(json.dumps(event).encode() + b"\n")
                if event["type"] == "ERROR":
                    return response

    def _fresh(self, version: int) -> list[tuple[int, Json]]:
        return [] if self.watch_lags else [entry for entry in self._log if entry[0] > version]

    async def catch_up(self) -> None:
        """Ends the lag."""
        async with self._changed:
            self.watch_lags = False
            self._changed.notify_all()


def _json(value: Json) -> web.Response:
    return web.json_response(value)


def _status(code: int, reason: str, message: str) -> web.Response:
    return web.json_response(
        {"kind": "Status", "code": code, "reason": reason, "message": message}, status=code
    )
