"""Processes: commands that run on their own, with an id, a status and a log, until they end or are ended."""

import asyncio
import signal
from binascii import Error as Base64Error
from binascii import a2b_base64
from functools import partial

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.budget import Budget
from sandpod_runtime.clock import timestamp
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.processes import (
    KillAllReply,
    KillReply,
    ListProcessesQuery,
    ProcessInfo,
    ProcessListReply,
    ProcessReply,
    SignalReply,
    SignalRequest,
    StartProcessReply,
    StartProcessRequest,
    StdinReply,
    StdinRequest,
)
from sandpod_runtime.process.command import Command
from sandpod_runtime.process.records import Processes, Record
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.surfaces.call import of_process
from sandpod_runtime.surfaces.processes_start import Failure, Starter, started_reply
from sandpod_runtime.wire import Bodies, Request, reply

# Input that a process has not read yet.
MOST_INPUT = 8 << 20
_LONGEST_ID = 256
# Where a path says these, they are not ids.
_RESERVED = frozenset((".", "..", "start", "list", "kill-all"))

_start_decoder = msgspec.json.Decoder(StartProcessRequest)
_signal_decoder = msgspec.json.Decoder(SignalRequest)
_stdin_decoder = msgspec.json.Decoder(StdinRequest)


class ProcessesSurface:
    def __init__(self, *, starter: Starter, processes: Processes, bodies: Bodies, memory: Budget) -> None:
        self._starter = starter
        self._processes = processes
        self._bodies = bodies
        self._memory = memory

    def routes(self) -> Routes:
        one = "/api/process/{id}"
        return {
            ("POST", "/api/process/start"): Endpoint(
                handler=self._start,
                tag="processes",
                summary="Start a process; the reply comes when it runs.",
                body=StartProcessRequest,
                reply=StartProcessReply,
                errors=(
                    "INVALID_COMMAND",
                    "PROCESS_ERROR",
                    "STREAM_START_ERROR",
                    "RESOURCE_BUSY",
                    "SESSION_TERMINATED",
                    "SESSION_DESTROYED",
                ),
            ),
            ("GET", "/api/process/list"): Endpoint(
                handler=self._list,
                tag="processes",
                summary="All processes that run, and the last that have ended.",
                query=ListProcessesQuery,
                reply=ProcessListReply,
            ),
            ("DELETE", "/api/process/kill-all"): Endpoint(
                handler=self._kill_all,
                tag="processes",
                summary="End all processes with all that they started.",
                reply=KillAllReply,
            ),
            ("GET", one): Endpoint(
                handler=self._get,
                tag="processes",
                summary="One process.",
                reply=ProcessReply,
                errors=("PROCESS_NOT_FOUND",),
            ),
            ("DELETE", one): Endpoint(
                handler=self._kill,
                tag="processes",
                summary="End a process with all that it started; the reply comes when they are dead.",
                reply=KillReply,
                errors=("PROCESS_NOT_FOUND", "COMMAND_NOT_FOUND"),
            ),
            ("POST", f"{one}/signal"): Endpoint(
                handler=self._signal,
                tag="processes",
                summary="Send a signal to a process, or to all that it started too.",
                body=SignalRequest,
                reply=SignalReply,
                errors=("PROCESS_NOT_FOUND", "COMMAND_NOT_FOUND"),
            ),
            ("POST", f"{one}/stdin"): Endpoint(
                handler=self._write,
                tag="processes",
                summary="Write to the standard input of a process that was started with `stdin: open`.",
                body=StdinRequest,
                reply=StdinReply,
                errors=("PROCESS_NOT_FOUND", "COMMAND_NOT_FOUND", "RESOURCE_BUSY"),
            ),
        }

    async def _start(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _start_decoder)
        process_id = _checked_id(body.process_id)
        call = of_process(body)
        failure = Failure(code="STREAM_START_ERROR", operation="process.start")
        record = await self._starter.process(call, request=request, failure=failure, process_id=process_id)
        return started_reply(record, call)

    async def _list(self, request: Request) -> StreamResponse:
        wanted = queried(request, ListProcessesQuery).status
        records = (each for each in self._processes.all() if wanted in (None, each.status))
        return reply(ProcessListReply(processes=[_info(record) for record in records]))

    async def _get(self, request: Request) -> StreamResponse:
        record = self._processes.find(request.segments["id"])
        await record.settled()
        return reply(ProcessReply(process=_info(record)))

    async def _kill(self, request: Request) -> StreamResponse:
        record = await self._living(request, "process.kill")
        record.kill()
        await asyncio.shield(record.ended)
        return reply(KillReply(process_id=record.id))

    async def _kill_all(self, _: Request) -> StreamResponse:
        await asyncio.gather(*(record.settled() for record in self._processes.living()))
        records = self._processes.living()
        for record in records:
            record.kill()
        await asyncio.gather(*(asyncio.shield(record.ended) for record in records))
        return reply(KillAllReply(cleaned_count=len(records)))

    async def _signal(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _signal_decoder)
        number = _number(body.signal)
        record = await self._living(request, "process.kill")
        _running(record).signal(number, whole_tree=body.tree)
        return reply(SignalReply(process_id=record.id, signal=number))

    async def _write(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _stdin_decoder)
        data = _data(body)
        record = await self._living(request, "process.get")
        pipe = _running(record).input
        if pipe is None or not pipe.accepts:
            raise invalid("data", 'its input is closed, or the process was not started with stdin: "open"')
        if pipe.pending + len(data) > MOST_INPUT or not self._memory.take(len(data)):
            raise Fault(
                "RESOURCE_BUSY",
                f"the process has {pipe.pending} bytes of input to read; {MOST_INPUT >> 20} MiB may wait, "
                "if the runtime has the memory",
                context={"processId": record.id},
                suggestion="send this again when it has read",
            )
        pipe.write(data, partial(self._memory.give, len(data)))
        if body.end:
            pipe.end()
        return reply(StdinReply(process_id=record.id, pending=pipe.pending))

    async def _living(self, request: Request, operation: str) -> Record:
        record = self._processes.find(request.segments["id"])
        await record.settled()
        if record.is_over:
            raise Fault(
                "COMMAND_NOT_FOUND",
                f"process {record.id}: it has ended",
                context={"command": record.id},
                operation=operation,
            )
        return record


def _checked_id(process_id: str | None) -> str | None:
    if process_id is None:
        return None
    if not process_id or len(process_id) > _LONGEST_ID or not process_id.isprintable():
        raise invalid("processId", f"an id is 1 to {_LONGEST_ID} printable characters")
    if "/" in process_id or process_id in _RESERVED:
        raise invalid(
            "processId", "an id stands in paths: no slash, and not a word that means something there"
        )
    return process_id


def _info(record: Record) -> ProcessInfo:
    found = ProcessInfo(
        id=record.id,
        command=record.command,
        status=record.status,
        start_time=timestamp(record.started_at),
    )
    if record.pid is not None:
        found.pid = record.pid
    if record.ended_at is not None:
        found.end_time = timestamp(record.ended_at)
    if record.exit_code is not None:
        found.exit_code = record.exit_code
    if record.session_id is not None:
        found.session_id = record.session_id
    if record.declared:
        found.declared = True
        found.restarts = record.restarts
    if record.port is not None:
        found.port = record.port
    return found


def _running(record: Record) -> Command:
    if record.running is None:
        raise Fault(
            "COMMAND_NOT_FOUND",
            f"process {record.id}: it waits to be started again",
            context={"command": record.id},
        )
    return record.running


def _number(given: int | str) -> int:
    if isinstance(given, str):
        name = given.upper()
        found = signal.Signals.__members__.get(name if name.startswith("SIG") else f"SIG{name}")
        if found is None:
            raise invalid("signal", "this is not the name of a signal, such as INT or SIGINT")
        return found
    return given


def _data(body: StdinRequest) -> bytes:
    if body.encoding == "utf-8":
        return body.data.encode()
    try:
        return a2b_base64(body.data.encode(), strict_mode=True)
    except Base64Error as error:
        raise invalid("data", f"this is not base64: {error}", code="INVALID_BASE64") from error
