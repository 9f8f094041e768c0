"""Waiting for a process: for its end, for something that it writes, or for a port that answers."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.processes import WaitReply, WaitRequest
from sandpod_runtime.process.expectation import Finder, RegexFinder, TextFinder, Watch, found
from sandpod_runtime.process.linear_regex import Regex, RegexError
from sandpod_runtime.process.records import Processes, Record
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import Bodies, Request, reply

MOST_WAITS = 256
_LOOPBACK = ("127.0.0.1", "::1")
_KNOCK_PAUSE = 0.1
_KNOCK_PATIENCE = 1.0

_decoder = msgspec.json.Decoder(WaitRequest)


class ProcessWaits:
    def __init__(self, *, processes: Processes, bodies: Bodies) -> None:
        self._processes = processes
        self._bodies = bodies
        self._waits = Slots("waits for processes", MOST_WAITS)
        self._turn = asyncio.Lock()

    def routes(self) -> Routes:
        return {
            ("POST", "/api/process/{id}/wait"): Endpoint(
                handler=self._wait,
                tag="processes",
                summary="Wait until a process has ended, has written something, or a port answers.",
                body=WaitRequest,
                reply=WaitReply,
                errors=(
                    "PROCESS_NOT_FOUND",
                    "PROCESS_READY_TIMEOUT",
                    "PROCESS_EXITED_BEFORE_READY",
                    "RESOURCE_BUSY",
                ),
            )
        }

    async def _wait(self, request: Request) -> StreamResponse:
        wanted = await self._bodies.read(request, _decoder)
        record = self._processes.find(request.segments["id"])
        condition = self._condition(wanted, record)
        try:
            with self._waits.one():
                async with asyncio.timeout(wanted.timeout_ms / 1000 if wanted.timeout_ms else None):
                    answer = await condition
        except TimeoutError as error:
            raise Fault(
                "PROCESS_READY_TIMEOUT",
                f"process {record.id}: waited {wanted.timeout_ms:g} ms for its {wanted.condition}",
                context=_context(record, wanted) | {"timeout": wanted.timeout_ms},
            ) from error
        finally:
            condition.close()
        if answer is None:
            raise Fault(
                "PROCESS_EXITED_BEFORE_READY",
                f"process {record.id}: it ended with exit code {record.exit_code} before its "
                f"{wanted.condition} came",
                context=_context(record, wanted) | {"exitCode": record.exit_code},
            )
        answer.status = record.status
        if record.exit_code is not None:
            answer.exit_code = record.exit_code
        return reply(answer)

    def _condition(self, wanted: WaitRequest, record: Record) -> Coroutine[Any, Any, WaitReply | None]:
        answer = WaitReply(process_id=record.id, condition=wanted.condition, status=record.status)
        if wanted.condition == "exit":
            return _exit(record, answer)
        if wanted.condition == "port":
            if wanted.port is None:
                raise invalid("port", "give the port that will answer")
            return _port(record, wanted.port, answer)
        return self._log(record, _watches(record, wanted), answer)

    async def _log(self, record: Record, watches: list[Watch], answer: WaitReply) -> WaitReply | None:
        if (place := await found(record.log, watches, turn=self._turn)) is None:
            return None
        answer.stream, answer.line = place
        return answer


def _watches(record: Record, wanted: WaitRequest) -> list[Watch]:
    if (wanted.text is None) == (wanted.regex is None):
        raise invalid("text", "give either a text or a regex to wait for")
    return [
        Watch(name, log, _finder(wanted))
        for name, log in record.log.streams()
        if wanted.stream in (None, name)
    ]


def _finder(wanted: WaitRequest) -> Finder:
    if wanted.text is not None:
        return TextFinder(wanted.text)
    assert wanted.regex is not None
    try:
        return RegexFinder(Regex(wanted.regex))
    except RegexError as error:
        raise invalid("regex", str(error)) from error


async def _exit(record: Record, answer: WaitReply) -> WaitReply:
    await asyncio.shield(record.ended)
    return answer


async def _port(record: Record, port: int, answer: WaitReply) -> WaitReply | None:
    while not record.is_over:
        if any([await _answers(host, port) for host in _LOOPBACK]):
            return answer
        await asyncio.wait((record.ended,), timeout=_KNOCK_PAUSE)
    return None


async def _answers(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_KNOCK_PATIENCE):
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, host, port)
    except OSError:  # also what asyncio's timeout raises
        return False
    transport.close()
    return True


def _context(record: Record, wanted: WaitRequest) -> dict[str, object]:
    return {"processId": record.id, "command": record.command, "condition": wanted.condition}
