"""The API server in memory over real HTTP, for an operator that is the whole one, kopf included: discovery,
lists, writes, and watches that stream, break off, and come back to a history that is forgotten.
"""

import asyncio
import contextlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml
from aiohttp import web
from sandpod_crds.errors import ApiError
from sandpod_operator.kinds import KINDS, Kind
from sandpod_operator.objects import Json, section, version_of

from tests.support.operator_api import Api
from tests.support.operator_world import BY_NAME

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


class WatchedApiServer:
    def __init__(self, api: Api) -> None:
        self.api = api
        # Before anybody has written: whoever watches hears of each write.
        api.log = _Log(api.log, told=self._tell)
        # The plural and the version of each watch that was asked for, and of those that were too old
        self.watches: list[tuple[str, int]] = []
        self.expired: list[tuple[str, int]] = []
        # Of each list that was read to its end: what was listed. To look whether there is any is none.
        self.lists: list[str] = []
        self._oldest = 0
        # The plurals of what nobody can watch now
        self._cut_off: frozenset[str] = frozenset()
        # How often all watches have come to their ordinary end
        self._ends = 0
        self._news = asyncio.Event()
        self._runner: web.ServerRunner | None = None
        self.port = 0

    async def start(self) -> None:
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def write_kubeconfig(self, path: Path) -> None:
        one = "here"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": one,
            "clusters": [{"name": one, "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": one, "user": {"token": "of-nobody"}}],
            "contexts": [{"name": one, "context": {"cluster": one, "user": one}}],
        }
        path.write_text(yaml.safe_dump(config), encoding="utf-8")

    # The levers

    def cut(self, *kinds: Kind) -> None:
        """The watches of these kinds, or all, break off in the middle, and none begins until `mend`."""
        self._cut_off = frozenset(kind.plural for kind in kinds or KINDS)
        self._tell()

    def mend(self) -> None:
        self._cut_off = frozenset()

    def forget(self) -> None:
        """No watch may begin at a version from before now."""
        self._oldest = self._version

    def end_watches(self) -> None:
        """As each ends after its time: well, and told last up to which version it knows everything."""
        self._ends += 1
        self._tell()

    async def news(self) -> None:
        """Returns after the next write."""
        await self._news.wait()

    # What answers

    @property
    def _version(self) -> int:
        return version_of(self.api.listing("/"))

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        found = _discover(request.path)
        if found is not None:
            return web.json_response(found)
        try:
            if request.query.get("watch") == "true":
                return await self._watch(request)
            return web.json_response(await self._serve(request))
        except ApiError as error:
            headers = {"Retry-After": str(int(error.retry_after))} if error.retry_after else None
            return web.json_response(_status(error), status=error.status, headers=headers)

    async def _serve(self, request: web.BaseRequest) -> Json:
        path, api = request.path, self.api
        body: Json = await request.json() if request.can_read_body else {}
        if request.method == "POST":
            return await api.create(path, body)
        if request.method == "PATCH":
            return await api.patch(path, body)
        if request.method == "DELETE":
            wanted = section(body, "preconditions")
            return await api.delete(
                path,
                uid=wanted.get("uid"),
                version=wanted.get("resourceVersion"),
                grace_seconds=body.get("gracePeriodSeconds"),
            )
        if not _is_collection(path):
            return await api.get(path)
        if request.query.get("limit") != "1":
            self.lists.append(path.rpartition("/")[2])
        return await api.list(path, query=request.query)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        kind = next(kind for kind in KINDS if kind.path() == request.path)
        since = int(request.query["resourceVersion"])
        self.watches.append((kind.plural, since))
        too_old = since < self._oldest
        if kind.plural in self._cut_off:
            return _break_off(request)
        if too_old:
            self.expired.append((kind.plural, since))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if too_old:
            await _write(response, "ERROR", _gone())
            return response
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(int(request.query["timeoutSeconds"])):
                await self._stream(
                    response, kind, since=since, selector=request.query.get("labelSelector", "")
                )
        if kind.plural in self._cut_off:
            return _break_off(request)
        await _write(response, "BOOKMARK", {"metadata": {"resourceVersion": str(self._version)}})
        return response

    async def _stream(self, response: web.StreamResponse, kind: Kind, *, since: int, selector: str) -> None:
        ends = self._ends
        at = bisect_right(self.api.log, since, key=lambda entry: version_of(entry[1]))
        while kind.plural not in self._cut_off and self._ends == ends:
            news, end = self._news, len(self.api.log)
            for event, obj in self.api.log[at:end]:
                if BY_NAME.get(obj["kind"]) is kind and _selects(selector, obj):
                    await _write(response, event, obj)
            at = end
            if news is self._news:
                await news.wait()


class _Log(list[tuple[str, Json]]):
    def __init__(self, entries: list[tuple[str, Json]], *, told: Callable[[], None]) -> None:
        super().__init__(entries)
        self._told = told

    def append(self, entry: tuple[str, Json], /) -> None:
        super().append(entry)
        self._told()


def _discover(path: str) -> Json | None:
    groups = {(kind.group, kind.version) for kind in KINDS}
    if path == "/api":
        return {"versions": ["v1"]}
    if path == "/apis":
        return {"groups": [_group(group, version) for group, version in sorted(groups) if group]}
    found = {name: kind for name, kind in BY_NAME.items() if kind.path().rpartition("/")[0] == path}
    return {"resources": list(_resources(found))} if found else None


def _group(group: str, version: str) -> Json:
    served = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [served], "preferredVersion": served}


def _resources(kinds: dict[str, Kind]) -> Iterator[Json]:
    for name, kind in kinds.items():
        namespaced = name not in ("Namespace", "SandboxPolicy")
        yield {
            "name": kind.plural,
            "singularName": name.lower(),
            "kind": name,
            "namespaced": namespaced,
            "verbs": VERBS,
        }


def _is_collection(path: str) -> bool:
    """Not one object: `/api/v1/pods`, `/apis/group/v1/namespaces/team/sandboxes`."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    return len(parts) == 1


def _selects(selector: str, obj: Json) -> bool:
    wanted = {tuple(label.split("=")) for label in selector.split(",") if label}
    return wanted <= section(obj["metadata"], "labels").items()


def _status(error: ApiError) -> Json:
    return {"kind": "Status", "code": error.status, "reason": error.reason, "message": error.message}


def _gone() -> Json:
    return _status(ApiError(410, "Expired", "too old resource version"))


async def _write(response: web.StreamResponse, event: str, obj: Json) -> None:
    await response.write(json.dumps({"type": event, "object": obj}).encode() + b"\n")


def _break_off(request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
