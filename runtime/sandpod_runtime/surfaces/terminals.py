"""terminals: made, resized, listed and destroyed over HTTP; their bytes travel over a WebSocket each."""

import os
from functools import partial

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET, UnsetType

from sandpod_runtime.clock import timestamp
from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.terminals import (
    CreateTerminalReply,
    CreateTerminalRequest,
    DestroyTerminalRequest,
    ResizeTerminalRequest,
    TerminalInfo,
    TerminalListReply,
    TerminalQuery,
    TerminalReply,
)
from sandpod_runtime.paths import checked, resolved, shown
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.session.ids import LONGEST
from sandpod_runtime.surfaces.terminal_socket import FRAMES, refuse_without_upgrade, refused, served, side
from sandpod_runtime.terminal.launch import DEFAULT_SIZE, Launch
from sandpod_runtime.terminal.pty import Size
from sandpod_runtime.terminal.terminal import Key, Terminal
from sandpod_runtime.terminal.terminals import Terminals
from sandpod_runtime.wire import Bodies, Request, reply

_create = msgspec.json.Decoder(CreateTerminalRequest)
_destroy = msgspec.json.Decoder(DestroyTerminalRequest)
_resize = msgspec.json.Decoder(ResizeTerminalRequest)


class TerminalSurface:
    def __init__(self, *, terminals: Terminals, environment: Environment, bodies: Bodies) -> None:
        self._terminals = terminals
        self._environment = environment
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            ("POST", "/api/terminal/create"): Endpoint(
                handler=self._create,
                tag="terminals",
                summary="Make a terminal; one that is there already is left as it is.",
                body=CreateTerminalRequest,
                reply=CreateTerminalReply,
                errors=(
                    "RESOURCE_BUSY",
                    "FILE_NOT_FOUND",
                    "NOT_DIRECTORY",
                    "PERMISSION_DENIED",
                    "COMMAND_NOT_FOUND",
                    "PROCESS_ERROR",
                ),
            ),
            ("POST", "/api/terminal/destroy"): Endpoint(
                handler=self._destroy,
                tag="terminals",
                summary="End a terminal and all that was started in it; the reply comes when it has gone.",
                body=DestroyTerminalRequest,
                reply=TerminalReply,
            ),
            ("POST", "/api/terminal/resize"): Endpoint(
                handler=self._resize,
                tag="terminals",
                summary="Give a terminal another size.",
                body=ResizeTerminalRequest,
                reply=TerminalReply,
                errors=("PROCESS_NOT_FOUND",),
            ),
            ("GET", "/api/terminal/list"): Endpoint(
                handler=self._list,
                tag="terminals",
                summary="The terminals that there are, also those of sessions.",
                reply=TerminalListReply,
                is_activity=False,
            ),
            ("GET", "/ws/terminal"): Endpoint(
                handler=self._attach,
                tag="terminals",
                summary="WebSocket: attach to a terminal that was created.",
                query=TerminalQuery,
                websocket=FRAMES,
                is_activity=False,
            ),
        }

    async def _create(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _create)
        key = Key(f"terminal-{_uuid()}" if body.id is None else _id(body.id))
        terminal, created = await self._terminals.get_or_create(key, partial(self._planned, body))
        return reply(
            CreateTerminalReply(
                id=key.id,
                pid=terminal.shown_pid,
                cols=terminal.size.cols,
                rows=terminal.size.rows,
                created=created,
            )
        )

    async def _destroy(self, request: Request) -> StreamResponse:
        key = Key(_id((await self._bodies.read(request, _destroy)).id))
        await self._terminals.destroy(key)
        return reply(TerminalReply(id=key.id))

    async def _resize(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _resize)
        key = Key(_id(body.id))
        self._existing(key).resize(Size(cols=body.cols, rows=body.rows))
        return reply(TerminalReply(id=key.id))

    async def _list(self, _: Request) -> StreamResponse:
        found = [_info(terminal) for terminal in self._terminals.all()]
        return reply(TerminalListReply(terminals=found, count=len(found)))

    async def _attach(self, request: Request) -> StreamResponse:
        refuse_without_upgrade(request)
        query = queried(request, TerminalQuery)
        if not query.terminal_id:
            return refused("terminalId: say which terminal\n")

        async def existing() -> Terminal:
            terminal = self._existing(Key(query.terminal_id))
            size = Size(cols=side(query.cols), rows=side(query.rows))
            if all(size):
                terminal.resize(size)
            return terminal

        return await served(request, existing)

    def _existing(self, key: Key) -> Terminal:
        if terminal := self._terminals.find(key):
            return terminal
        raise Fault("PROCESS_NOT_FOUND", "Terminal not found", context={"processId": key.id})

    async def _planned(self, body: CreateTerminalRequest) -> Launch:
        home = self._environment.directory()
        return Launch(
            environ=self._environment.variables,
            directory=resolved(checked(body.cwd, field="cwd"), base=home) if body.cwd else home,
            otherwise=None,
            shell=body.shell,
            size=Size(cols=body.cols or DEFAULT_SIZE.cols, rows=body.rows or DEFAULT_SIZE.rows),
        )


def _id(given: str | None) -> str:
    if given is None or not given.strip():
        raise invalid("id", "give the id of a terminal")
    if len(given) > LONGEST or not given.isprintable():
        raise invalid("id", f"the id of a terminal is at most {LONGEST} printable characters")
    return given


def _uuid() -> str:
    import uuid  # a terminal can wait for it, the start need not

    return str(uuid.uuid4())


def _info(terminal: Terminal) -> TerminalInfo:
    return TerminalInfo(
        id=terminal.key.id,
        pid=terminal.shown_pid,
        cols=terminal.size.cols,
        rows=terminal.size.rows,
        viewers=terminal.viewers,
        started_at=timestamp(terminal.started_at),
        cwd=_directory_of(terminal.pid),
        session_id=terminal.key.id if terminal.key.is_sessions else UNSET,
    )


def _directory_of(pid: int) -> str | UnsetType:
    try:
        return shown(os.readlink(f"/proc/{pid}/cwd"))  # noqa: PTH115 (of the kernel's memory: no disk is asked)
    except OSError:
        return UNSET  # it runs as another user, or has just ended
