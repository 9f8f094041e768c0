"""exec: one command, buffered (`/api/execute`) or streamed (`/api/execute/stream`): of its own, or in a
session. The streamed ones, and those in the background, are processes.
"""

import asyncio
import logging
from functools import partial

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.budget import Budget
from sandpod_runtime.models.exec import (
    CompleteEvent,
    ErrorEvent,
    ExecuteReply,
    ExecuteRequest,
    StartEvent,
    StderrEvent,
    StdoutEvent,
)
from sandpod_runtime.models.processes import StartProcessReply
from sandpod_runtime.process.command import Command, Ending
from sandpod_runtime.process.feed import Feed
from sandpod_runtime.process.output import Capture
from sandpod_runtime.process.records import Record
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.session.sessions import Sessions
from sandpod_runtime.sse import HEARTBEAT, HEARTBEAT_SECONDS, event, open_stream
from sandpod_runtime.surfaces.call import Call, understood
from sandpod_runtime.surfaces.exec_reply import OutputEvents, buffered_reply
from sandpod_runtime.surfaces.processes_start import Failure, Starter, started_reply
from sandpod_runtime.wire import Bodies, Request

logger = logging.getLogger(__name__)
_decoder = msgspec.json.Decoder(ExecuteRequest)

_BUFFERED = Failure(code="COMMAND_EXECUTION_ERROR", operation="command.execute")
_STREAMED = Failure(code="STREAM_START_ERROR", operation="command.stream")


class Exec:
    def __init__(self, *, starter: Starter, sessions: Sessions, bodies: Bodies, memory: Budget) -> None:
        self._starter = starter
        self._sessions = sessions
        self._bodies = bodies
        self._memory = memory

    def routes(self) -> Routes:
        return {
            ("POST", "/api/execute"): Endpoint(
                handler=self._buffered,
                tag="exec",
                summary="Run one command; the reply comes when it has ended (in the background: has begun).",
                body=ExecuteRequest,
                reply=ExecuteReply,
                other_reply=StartProcessReply,
                errors=(
                    "INVALID_COMMAND",
                    "COMMAND_EXECUTION_ERROR",
                    "RESOURCE_BUSY",
                    "SESSION_TERMINATED",
                    "SESSION_DESTROYED",
                ),
            ),
            ("POST", "/api/execute/stream"): Endpoint(
                handler=self._streamed,
                tag="exec",
                summary="Run one command as a process; its output comes as it is written.",
                body=ExecuteRequest,
                events=(StartEvent, StdoutEvent, StderrEvent, CompleteEvent, ErrorEvent),
                errors=(
                    "INVALID_COMMAND",
                    "STREAM_START_ERROR",
                    "RESOURCE_BUSY",
                    "SESSION_TERMINATED",
                    "SESSION_DESTROYED",
                ),
            ),
        }

    async def _buffered(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _decoder)
        call = understood(body, request=request, streamed=False)
        if body.background:
            return started_reply(await self._starter.process(call, request=request, failure=_BUFFERED), call)
        stdout, stderr = (Capture(limit=call.output_limit, budget=self._memory) for _ in range(2))
        try:
            run = self._stateless if call.session_id is None else self._in_session
            ending = await run(call, request=request, stdout=stdout, stderr=stderr)
            return await buffered_reply(request, call=call, ending=ending, stdout=stdout, stderr=stderr)
        finally:
            stdout.release()
            stderr.release()

    async def _stateless(self, call: Call, *, request: Request, stdout: Capture, stderr: Capture) -> Ending:
        command = self._starter.command(
            call, request=request, stdout=stdout.write, stderr=stderr.write, failure=_BUFFERED
        )
        try:
            return await command.ending()
        except asyncio.CancelledError:
            _hung_up(command, kill=call.kill_on_disconnect)
            raise

    async def _in_session(self, call: Call, *, request: Request, stdout: Capture, stderr: Capture) -> Ending:
        assert call.session_id is not None
        session = await self._sessions.use(call.session_id)
        return await session.run(
            command=call.command,
            env=call.env,
            cwd=call.cwd,
            timeout=call.timeout,
            stdout=stdout.write,
            stderr=stderr.write,
        )

    async def _streamed(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _decoder)
        call = understood(body, request=request, streamed=True)
        feed = Feed()
        record = await self._starter.process(
            call,
            request=request,
            failure=_STREAMED,
            feed=(partial(feed.write, "stdout"), partial(feed.write, "stderr")),
        )
        command = record.running
        assert command is not None
        command.ended.add_done_callback(lambda _: feed.end())
        try:
            response = await open_stream(request)
            await _relay(response, call=call, record=record, command=command, feed=feed)
        except (asyncio.CancelledError, ConnectionError):
            _left(record, command, kill=call.kill_on_disconnect)
            raise
        return response


async def _relay(
    response: StreamResponse, *, call: Call, record: Record, command: Command, feed: Feed
) -> None:
    try:
        session = {} if call.session_id is None else {"sessionId": call.session_id}
        await response.write(
            event("start", command=call.command, pid=command.shown_pid, processId=record.id, **session)
        )
        ending = await _send_output(response, call=call, command=command, feed=feed)
        await response.write(event("complete", exitCode=_exit_code(record, ending)))
    except ConnectionError:
        raise
    except Exception:
        logger.exception("a stream failed")
        command.detach(record.log.write_stdout, record.log.write_stderr)
        # A client reads `data`, and would take a stream that just stops for a success.
        text = "the runtime failed while it streamed the output; its log says how"
        await response.write(event("error", error=text, data=text))


async def _send_output(response: StreamResponse, *, call: Call, command: Command, feed: Feed) -> Ending:
    events = OutputEvents(base64=call.base64)
    while True:
        while output := feed.pop():
            await response.write(events.of(*output))
            if feed.has_room:
                command.resume()
        if feed.ended:
            break
        await feed.wait(HEARTBEAT_SECONDS)
        if feed.is_quiet:
            await response.write(HEARTBEAT)
    ending = command.ended.result()
    if last := events.end(note=f"{call.timeout_note}\n" if ending.timed_out else ""):
        await response.write(last)
    return ending


def _exit_code(record: Record, ending: Ending) -> int:
    """A process that was killed has 143 or 137, whatever it made of the SIGTERM."""
    return ending.exit_code if record.exit_code is None else record.exit_code


def _hung_up(command: Command, *, kill: bool) -> None:
    if command.ended.done():
        return
    logger.info("the client hung up", extra={"pid": command.pid, "killed": kill})
    if kill:
        command.stop()
    else:
        command.detach()


def _left(record: Record, command: Command, *, kill: bool) -> None:
    """The reader of a stream has gone. The process has its log, which goes on."""
    if command.ended.done():
        return
    logger.info("the client hung up", extra={"pid": command.pid, "killed": kill})
    command.detach(record.log.write_stdout, record.log.write_stderr)
    if kill:
        record.kill()
