"""What processes wrote: at once, from an offset on, or followed."""

import codecs
import time
from collections.abc import AsyncIterator, Iterator

from aiohttp.web_response import StreamResponse

from sandpod_runtime.budget import Budget
from sandpod_runtime.clock import timestamp
from sandpod_runtime.errors import Fault
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.processes import (
    ExitEvent,
    GapEvent,
    LogsQuery,
    LogsReply,
    LogStderrEvent,
    LogStdoutEvent,
    ProcessInfoEvent,
)
from sandpod_runtime.process.logbook import StreamLog
from sandpod_runtime.process.records import Processes, Record
from sandpod_runtime.process.rendering import as_base64, broken_end, broken_start, cut_note, decoded
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.sse import HEARTBEAT, HEARTBEAT_SECONDS, ascii_json, event, open_stream
from sandpod_runtime.surfaces.exec_reply import reply_with_texts
from sandpod_runtime.wire import Request

MOST_STREAMS = 256
_PIECE = 65_536
# Somebody who asks for the log of `echo hi` right after its start expects it to have said hi.
_FIRST_WORDS = 0.25


class ProcessLogs:
    def __init__(self, *, processes: Processes, memory: Budget) -> None:
        self._processes = processes
        self._memory = memory
        self._streams = Slots("log streams", MOST_STREAMS)

    def routes(self) -> Routes:
        return {
            ("GET", "/api/process/{id}/logs"): Endpoint(
                handler=self._logs,
                tag="processes",
                summary="What a process wrote: all that is kept, or from an offset on.",
                query=LogsQuery,
                reply=LogsReply,
                errors=("PROCESS_NOT_FOUND", "RESOURCE_BUSY"),
            ),
            ("GET", "/api/process/{id}/stream"): Endpoint(
                handler=self._stream,
                tag="processes",
                summary="What a process wrote, and then what it writes, until it ends.",
                events=(ProcessInfoEvent, LogStdoutEvent, LogStderrEvent, GapEvent, ExitEvent),
                looks_on=True,
                errors=("PROCESS_NOT_FOUND", "RESOURCE_BUSY"),
            ),
        }

    async def _logs(self, request: Request) -> StreamResponse:
        record = self._processes.find(request.segments["id"])
        query: LogsQuery = queried(request, LogsQuery)
        await record.settled()
        await _first_words(record)
        offsets = (query.stdout_offset, query.stderr_offset)
        whole = offsets == (None, None)
        fields: dict[str, object] = {
            "success": True,
            "timestamp": timestamp(),
            "processId": record.id,
            "status": record.status,
        }
        if query.encoding == "base64":
            fields["encoding"] = "base64"
        texts: dict[str, Iterator[str]] = {}
        size = 0
        for (name, log), offset in zip(record.log.streams(), offsets, strict=True):
            self._charge(request, log)
            is_text = query.encoding == "utf-8"
            data, dropped = _read(log, offset or 0, whole_characters=is_text, final=record.is_over)
            fields[f"{name}Next"] = min(offset or 0, log.total) + dropped + len(data)
            fields[f"{name}Dropped"] = dropped
            texts[name] = _text(data, dropped if whole else 0) if is_text else as_base64(data)
            size += len(data)
        return await reply_with_texts(request, fields=fields, texts=texts, size=size)

    async def _stream(self, request: Request) -> StreamResponse:
        record = self._processes.find(request.segments["id"])
        with self._streams.one():
            await record.settled()
            # From here to the copies nothing may wait: the replay and what follows it must meet exactly.
            for _, log in record.log.streams():
                self._charge(request, log)
            followers = [_Follower(record, name, log) for name, log in record.log.streams()]
            response = await open_stream(request)
            await response.write(_process_info(record, followers))
            for follower in followers:
                async for piece in follower.replay():
                    await response.write(piece)
            self._memory.give(request.charged)
            request.charged = 0
            await _follow(response, record, followers)
        return response

    def _charge(self, request: Request, log: StreamLog) -> None:
        size = log.total - log.start
        if not self._memory.take(size):
            raise Fault(
                "RESOURCE_BUSY",
                f"the runtime has {self._memory.total >> 20} MiB for bodies and outputs, and they are in "
                "use; ask for this log again later",
            )
        request.charged += size


async def _first_words(record: Record) -> None:
    until = record.started_at + _FIRST_WORDS
    while not (record.is_over or record.log.stdout.total or record.log.stderr.total):
        left = until - time.time()
        if not 0 < left <= _FIRST_WORDS:
            return
        await record.log.more(left)


def _read(log: StreamLog, offset: int, *, whole_characters: bool, final: bool) -> tuple[bytes, int]:
    """From there on, and how many bytes are gone that should have come first."""
    dropped = max(0, log.start - offset)
    data = log.read(offset)
    if whole_characters:
        if dropped:
            lost = broken_start(data[:3])
            data = data[lost:]
            dropped += lost
        if not final and (unfinished := broken_end(memoryview(data))):
            data = data[:-unfinished]
    return data, dropped


def _text(data: bytes, dropped: int) -> Iterator[str]:
    if dropped:
        yield cut_note(dropped)
    yield from decoded(data)


def _process_info(record: Record, followers: "list[_Follower]") -> bytes:
    pid = {} if record.pid is None else {"pid": record.pid}
    dropped = {f"{follower.name}Dropped": follower.dropped for follower in followers}
    return event(
        "process_info", processId=record.id, command=record.command, status=record.status, **pid, **dropped
    )


async def _follow(response: StreamResponse, record: Record, followers: "list[_Follower]") -> None:
    while True:
        pieces = b"".join(piece for follower in followers for piece in follower.news())
        if pieces:
            await response.write(pieces)
        elif record.log.closed:
            break
        elif not await record.log.more(HEARTBEAT_SECONDS):
            await response.write(HEARTBEAT)
    last = b"".join(piece for follower in followers for piece in follower.rest())
    code = record.exit_code
    farewell = event(
        "exit",
        processId=record.id,
        exitCode=code,
        data=f"the process ended with exit code {code}",
        status=record.status,
    )
    await response.write(last + farewell)


class _Follower:
    """One reader's place in one stream of a log."""

    def __init__(self, record: Record, name: str, log: StreamLog) -> None:
        self.name = name
        self.dropped = log.start
        self._id = record.id
        self._log = log
        self._past = log.read(log.start)
        self._place = log.total
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def replay(self) -> AsyncIterator[bytes]:
        """What was there, as one event, in pieces: as a whole it could be large."""
        past, self._past = self._past, b""
        if self.dropped:
            past = past[broken_start(past[:3]) :]
        if not past:
            return
        yield b'data: {"type":"%b","data":"' % self.name.encode()
        for start in range(0, len(past), _PIECE):
            yield ascii_json(self._decoder.decode(past[start : start + _PIECE]))[1:-1]
        yield b'"' + self._end()

    def news(self) -> Iterator[bytes]:
        if (missed := self._log.start - self._place) > 0:
            yield from self.rest()
            yield event("gap", processId=self._id, stream=self.name, bytes=missed)
            self._place = self._log.start
        if data := self._log.read(self._place, _PIECE):
            self._place += len(data)
            yield self._event(self._decoder.decode(data))

    def rest(self) -> Iterator[bytes]:
        """What is left of an unfinished character."""
        if text := self._decoder.decode(b"", final=True):
            yield self._event(text)
        self._decoder.reset()

    def _event(self, text: str) -> bytes:
        return b'data: {"type":"%b","data":%b' % (self.name.encode(), ascii_json(text)) + self._end()

    def _end(self) -> bytes:
        return b',"processId":%b,"timestamp":"%b"}\n\n' % (ascii_json(self._id), timestamp().encode())
