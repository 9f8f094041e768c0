"""Changes of files: as a stream, or by asking again and again whether there were any."""

import asyncio
import json
import posixpath
import re

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime import paths
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.watch import (
    ChangeEvent,
    StoppedEvent,
    WatchCheckReply,
    WatchCheckRequest,
    WatchErrorEvent,
    WatchingEvent,
    WatchRequest,
)
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.session.ids import named
from sandpod_runtime.sse import HEARTBEAT, HEARTBEAT_SECONDS, open_stream
from sandpod_runtime.watch import patterns
from sandpod_runtime.watch.pending import MOST as MOST_PENDING
from sandpod_runtime.watch.pending import Change
from sandpod_runtime.watch.watching import Spec, Subscriber, Watch, Watches
from sandpod_runtime.wire import Bodies, Request, reply

MOST_STREAMS = 128
# Of the protocol: how long changes are collected.
_COALESCED_SECONDS = 0.075
_DEFAULT_KINDS = ("create", "modify", "delete", "move_from", "move_to")
_VERSION = re.compile(r"(watch-[0-9]{1,20}-[0-9]{1,20}):([0-9]{1,20})")

_decoder = msgspec.json.Decoder(WatchRequest)
_check_decoder = msgspec.json.Decoder(WatchCheckRequest)


class Watching:
    def __init__(self, *, watches: Watches, bodies: Bodies, workspace: str) -> None:
        self._bodies = bodies
        self._workspace = posixpath.normpath(workspace)
        self._watches = watches
        self._streams = Slots("watch streams", MOST_STREAMS)

    def routes(self) -> Routes:
        errors = (
            "FILE_NOT_FOUND",
            "PERMISSION_DENIED",
            "NOT_DIRECTORY",
            "NAME_TOO_LONG",
            "TOO_MANY_LINKS",
            "RESOURCE_BUSY",
            "WATCH_START_ERROR",
        )
        return {
            ("POST", "/api/watch"): Endpoint(
                handler=self._stream,
                tag="watch",
                summary="Tell of every change of a directory's files.",
                body=WatchRequest,
                events=(WatchingEvent, ChangeEvent, StoppedEvent, WatchErrorEvent),
                looks_on=True,
                errors=errors,
            ),
            ("POST", "/api/watch/check"): Endpoint(
                handler=self._check,
                tag="watch",
                summary="Whether anything has changed since the last check.",
                body=WatchCheckRequest,
                reply=WatchCheckReply,
                errors=errors,
            ),
        }

    async def _stream(self, request: Request) -> StreamResponse:
        spec = self._spec(await self._bodies.read(request, _decoder))
        with self._streams.one():
            async with self._watches.held(spec) as (watch, _):
                return await _relayed(request, spec=spec, watch=watch)

    async def _check(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _check_decoder)
        spec = self._spec(body)
        since = _since(body.since)
        async with self._watches.held(spec) as (watch, made):
            watch.polled = True
            await watch.catch_up()
            return reply(_checked(watch, made=made, since=since))

    def _spec(self, body: WatchRequest) -> Spec:
        named(body.session_id)
        if body.include and body.exclude:
            raise invalid("exclude", "give include or exclude, not both")
        return Spec(
            path=self._below_workspace(body.path),
            recursive=body.recursive,
            include=_patterns("include", body.include),
            exclude=_patterns("exclude", body.exclude or (() if body.include else patterns.DEFAULT_EXCLUDE)),
            kinds=frozenset(body.events or _DEFAULT_KINDS),
        )

    def _below_workspace(self, given: str) -> str:
        wanted = paths.resolved(paths.checked(given.strip()), base=self._workspace)
        # By its text alone, as the protocol has it: where links lead does not matter.
        path = "/" + posixpath.normpath(wanted).lstrip("/")
        if path != self._workspace and not path.startswith(self._workspace.rstrip("/") + "/"):
            raise Fault(
                "PERMISSION_DENIED",
                f"{path}: only what is below {self._workspace} can be watched",
                context={"path": path, "operation": "watch"},
            )
        return path


async def _relayed(request: Request, *, spec: Spec, watch: Watch) -> StreamResponse:
    subscriber = Subscriber()
    watch.subscribers.add(subscriber)
    try:
        if watch.end is not None:
            subscriber.finish(watch.end)
        response = await open_stream(request)
        await response.write(_line(WatchingEvent(path=spec.path, watch_id=watch.id)))
        await _send(response, subscriber)
        return response
    finally:
        watch.subscribers.discard(subscriber)


async def _send(response: StreamResponse, subscriber: Subscriber) -> None:
    while True:
        if not await _within(subscriber.told, HEARTBEAT_SECONDS):
            await response.write(HEARTBEAT)
            continue
        await _within(subscriber.urgent, _COALESCED_SECONDS)
        lost = subscriber.pending.lost
        if changes := subscriber.take():
            await response.write(b"".join(_line(_event(change, at)) for change, at in changes))
        if lost:
            text = f"{lost} changes were lost: more than {MOST_PENDING} waited to be read by this client"
            await response.write(_line(WatchErrorEvent(error=text)))
            return
        if (end := subscriber.end) is not None:
            last = WatchErrorEvent(error=end.reason) if end.failed else StoppedEvent(reason=end.reason)
            await response.write(_line(last))
            return


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _event(change: Change, at: str) -> ChangeEvent:
    return ChangeEvent(
        event_type=change.kind, path=paths.shown(change.path), is_directory=change.is_directory, timestamp=at
    )


def _line(event: msgspec.Struct) -> bytes:
    text = json.dumps(msgspec.to_builtins(event), separators=(",", ":"))
    return b"data: %b\n\n" % text.encode("ascii")


def _patterns(field: str, given: list[str] | tuple[str, ...] | None) -> frozenset[str]:
    for number, pattern in enumerate(given or ()):
        if problem := patterns.problem(pattern):
            raise invalid(f"{field}[{number}]", problem)
    return frozenset(given or ())


def _since(given: str | None) -> tuple[str, int] | None:
    if given is None:
        return None
    if not (found := _VERSION.fullmatch(given)):
        raise invalid("since", "this is not a version that a check has told")
    return found[1], int(found[2])


def _checked(watch: Watch, *, made: bool, since: tuple[str, int] | None) -> WatchCheckReply:
    version = f"{watch.id}:{watch.changes}"
    if since is None:
        return WatchCheckReply(status="unchanged", version=version)
    watch_id, count = since
    if watch_id != watch.id:
        return WatchCheckReply(status="resync", version=version, reason="expired" if made else "restarted")
    if count > watch.changes:
        raise invalid("since", "this version is still to come")
    return WatchCheckReply(status="unchanged" if count == watch.changes else "changed", version=version)
