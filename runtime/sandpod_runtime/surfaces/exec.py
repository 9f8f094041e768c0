"""exec: one stateless command, buffered (`/api/execute`) or streamed (`/api/execute/stream`). Nothing
persists.
"""

import asyncio
import logging
from functools import partial
from typing import NamedTuple

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.budget import Budget
from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.exec import (
    CompleteEvent,
    ErrorEvent,
    ExecuteReply,
    ExecuteRequest,
    StartEvent,
    StderrEvent,
    StdoutEvent,
)
from sandpod_runtime.process import shell
from sandpod_runtime.process.command import Command, Ending
from sandpod_runtime.process.commands import Commands, TooManyCommandsError
from sandpod_runtime.process.feed import Feed
from sandpod_runtime.process.output import Capture
from sandpod_runtime.process.pipe import Sink
from sandpod_runtime.process.spawn import Program, SpawnError
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.sse import HEARTBEAT, HEARTBEAT_SECONDS, event, open_stream
from sandpod_runtime.surfaces.call import Call, understood
from sandpod_runtime.surfaces.exec_reply import OutputEvents, buffered_reply
from sandpod_runtime.wire import Bodies, Request

logger = logging.getLogger(__name__)
_decoder = msgspec.json.Decoder(ExecuteRequest)


class Failure(NamedTuple):
    """How the protocol calls a command that could not be started."""

    code: str
    operation: str


_BUFFERED = Failure(code="COMMAND_EXECUTION_ERROR", operation="command.execute")
_STREAMED = Failure(code="STREAM_START_ERROR", operation="command.stream")


class Exec:
    def __init__(
        self, *, commands: Commands, environment: Environment, bodies: Bodies, memory: Budget
    ) -> None:
        self._commands = commands
        self._environment = environment
        self._bodies = bodies
        self._memory = memory

    def routes(self) -> Routes:
        return {
            ("POST", "/api/execute"): Endpoint(
                handler=self._buffered,
                tag="exec",
                summary="Run one command; the reply comes when it has ended.",
                body=ExecuteRequest,
                reply=ExecuteReply,
                errors=("INVALID_COMMAND", "COMMAND_EXECUTION_ERROR", "RESOURCE_BUSY"),
            ),
            ("POST", "/api/execute/stream"): Endpoint(
                handler=self._streamed,
                tag="exec",
                summary="Run one command; its output comes as it is written.",
                body=ExecuteRequest,
                events=(StartEvent, StdoutEvent, StderrEvent, CompleteEvent, ErrorEvent),
                errors=("INVALID_COMMAND", "STREAM_START_ERROR", "RESOURCE_BUSY"),
            ),
        }

    async def _buffered(self, request: Request) -> StreamResponse:
        call = await self._call(request, streamed=False)
        outputs = [Capture(limit=call.output_limit, budget=self._memory) for _ in range(2)]
        try:
            command = self._start(
                call, request=request, stdout=outputs[0].write, stderr=outputs[1].write, failure=_BUFFERED
            )
            try:
                ending = await asyncio.shield(command.ended)
            except asyncio.CancelledError:
                _hung_up(command, call)
                raise
            return await buffered_reply(
                request, call=call, ending=ending, stdout=outputs[0], stderr=outputs[1]
            )
        finally:
            for output in outputs:
                output.release()

    async def _streamed(self, request: Request) -> StreamResponse:
        call = await self._call(request, streamed=True)
        feed = Feed()
        command = self._start(
            call,
            request=request,
            stdout=partial(feed.write, "stdout"),
            stderr=partial(feed.write, "stderr"),
            failure=_STREAMED,
        )
        command.ended.add_done_callback(lambda _: feed.end())
        try:
            response = await open_stream(request)
            await _relay(response, call=call, command=command, feed=feed)
        except (asyncio.CancelledError, ConnectionError):
            _hung_up(command, call)
            raise
        return response

    async def _call(self, request: Request, *, streamed: bool) -> Call:
        body = await self._bodies.read(request, _decoder)
        return understood(body, request=request, environment=self._environment, streamed=streamed)

    def _start(
        self, call: Call, *, request: Request, stdout: Sink, stderr: Sink, failure: Failure
    ) -> Command:
        context: dict[str, object] = {"command": call.command}
        # The input outlives a request whose client leaves: its part of the body's charge goes over to it.
        charge = min(request.charged, len(call.stdin or b""))
        try:
            with shell.prepared(call.command, search=call.environ.get("PATH", "")) as line:
                program = Program(
                    path=line.path,
                    arguments=line.arguments,
                    environ=call.environ,
                    directory=call.directory,
                    script=line.script,
                )
                command = self._commands.start(
                    program,
                    stdin=call.stdin,
                    stdin_done=partial(self._memory.give, charge),
                    stdout=stdout,
                    stderr=stderr,
                    timeout=call.timeout,
                )
                request.charged -= charge
                return command
        except TooManyCommandsError as error:
            error.context = context
            raise
        except shell.NoShellError as error:
            raise Fault(failure.code, str(error), context=context, operation=failure.operation) from error
        except SpawnError as error:
            if error.too_large:
                raise invalid("env", str(error)) from error
            raise Fault(failure.code, str(error), context=context, operation=failure.operation) from error


async def _relay(response: StreamResponse, *, call: Call, command: Command, feed: Feed) -> None:
    try:
        await response.write(event("start", command=call.command, pid=command.pid))
        ending = await _send_output(response, call=call, command=command, feed=feed)
        await response.write(event("complete", exitCode=ending.exit_code))
    except ConnectionError:
        raise
    except Exception:
        logger.exception("a stream failed")
        command.detach()
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


def _hung_up(command: Command, call: Call) -> None:
    if command.ended.done():
        return
    logger.info("the client hung up", extra={"pid": command.pid, "killed": call.kill_on_disconnect})
    if call.kill_on_disconnect:
        command.stop()
    else:
        command.detach()
