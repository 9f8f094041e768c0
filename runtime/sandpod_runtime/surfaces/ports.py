"""Ports: which are listened on and by whom, and a stream that says when one answers."""

import asyncio
import time

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET

from sandpod_runtime.disk import Disk
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.ports import (
    ListeningPort,
    PortErrorEvent,
    PortEvent,
    PortProcessExitedEvent,
    PortReadyEvent,
    PortsReply,
    PortWatchingEvent,
    PortWatchRequest,
)
from sandpod_runtime.ports import listening, probe
from sandpod_runtime.process.records import Processes, Record
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.sse import HEARTBEAT, HEARTBEAT_SECONDS, open_stream, struct_event
from sandpod_runtime.wire import Bodies, Request, reply

MOST_SHOWN = 1000
MOST_WATCHES = 64
_SHORTEST_MS = 100.0
_LONGEST_MS = 10_000.0

_decoder = msgspec.json.Decoder(PortWatchRequest)


class Ports:
    def __init__(self, *, processes: Processes, disk: Disk, bodies: Bodies) -> None:
        self._processes = processes
        self._disk = disk
        self._bodies = bodies
        self._slots = Slots("port watches", MOST_WATCHES)

    def routes(self) -> Routes:
        return {
            ("GET", "/api/ports"): Endpoint(
                handler=self._list,
                tag="ports",
                summary="What listens, and the processes behind it.",
                reply=PortsReply,
            ),
            ("POST", "/api/port-watch"): Endpoint(
                handler=self._watch,
                tag="ports",
                summary="Wait until a port answers, or the process that was to open it has ended.",
                body=PortWatchRequest,
                events=(PortWatchingEvent, PortReadyEvent, PortProcessExitedEvent, PortErrorEvent),
                errors=("RESOURCE_BUSY",),
            ),
        }

    async def _list(self, request: Request) -> StreamResponse:
        found = await self._disk.run(listening.listening)
        ids = {record.pid: record.id for record in self._processes.living() if record.pid}
        own = _own_port(request)
        ports = [_shown(socket, holder, ids=ids, own=own) for socket, holder in found[:MOST_SHOWN]]
        return reply(PortsReply(ports=ports, truncated=len(found) > MOST_SHOWN))

    async def _watch(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _decoder)
        if any(ord(character) < 32 or ord(character) == 127 for character in body.path):
            raise invalid("path", "a path cannot hold control characters")
        with self._slots.one():
            response = await open_stream(request)
            await response.write(struct_event(PortWatchingEvent(port=body.port)))
            record: Record | None = None
            if body.process_id:
                try:
                    record = self._processes.find(body.process_id)
                except Fault as fault:
                    await response.write(struct_event(PortErrorEvent(port=body.port, error=fault.message)))
                    return response
            await response.write(struct_event(await _awaited(response, body, record)))
        return response


async def _awaited(response: StreamResponse, body: PortWatchRequest, record: Record | None) -> PortEvent:
    exited = asyncio.Event()
    leave = record.on_exit(exited.set) if record else None
    watching = asyncio.create_task(_polled(body))
    exiting = asyncio.create_task(exited.wait())
    try:
        spoken = time.monotonic()
        while True:
            # The process first: its port may be answered by somebody else by now.
            if record is not None and record.is_over:
                return PortProcessExitedEvent(port=body.port, exit_code=record.exit_code)
            if watching.done():
                return watching.result()
            quiet = spoken + HEARTBEAT_SECONDS - time.monotonic()
            await asyncio.wait(
                (watching, exiting), timeout=max(0, quiet), return_when=asyncio.FIRST_COMPLETED
            )
            if time.monotonic() - spoken >= HEARTBEAT_SECONDS:
                await response.write(HEARTBEAT)
                spoken = time.monotonic()
    finally:
        if leave is not None:
            leave()
        watching.cancel()
        exiting.cancel()


async def _polled(body: PortWatchRequest) -> PortReadyEvent:
    pause = min(max(body.interval, _SHORTEST_MS), _LONGEST_MS) / 1000
    while True:
        if body.mode == "tcp":
            if await probe.connects(body.port):
                return PortReadyEvent(port=body.port)
        else:
            code = await probe.status(body.port, body.path)
            if code is not None and body.status_min <= code <= body.status_max:
                return PortReadyEvent(port=body.port, status_code=code)
        await asyncio.sleep(pause)


def _shown(
    socket: listening.Socket, holder: listening.Holder | None, *, ids: dict[int, str], own: int | None
) -> ListeningPort:
    found = ListeningPort(
        port=socket.port, address=socket.address, uid=socket.uid, control=socket.port == own
    )
    if holder is not None:
        found.pid, found.name, found.command = holder.pid, holder.name, holder.command
        started = (ids[pid] for pid in (holder.pid, *holder.ancestors) if pid in ids)
        found.process_id = next(started, UNSET)
    return found


def _own_port(request: Request) -> int | None:
    """The port by which this request came, which need not be 3000."""
    transport = request.transport
    name = transport.get_extra_info("sockname") if transport else None
    return name[1] if name else None
