"""Sessions: making, showing and deleting the shells that other surfaces use by their ids."""

import os
import time

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET

from sandpod_runtime.environment import name_problem
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.sessions import (
    CreateSessionReply,
    CreateSessionRequest,
    DeleteSessionReply,
    DeleteSessionRequest,
    ListSessionsReply,
    SessionPlace,
    SessionReply,
)
from sandpod_runtime.paths import checked, shown
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.session.ids import NO_SESSION, named
from sandpod_runtime.session.sessions import Sessions
from sandpod_runtime.wire import Bodies, Request, reply

_create_decoder = msgspec.json.Decoder(CreateSessionRequest)
_delete_decoder = msgspec.json.Decoder(DeleteSessionRequest)


class SessionsSurface:
    def __init__(self, *, sessions: Sessions, bodies: Bodies) -> None:
        self._sessions = sessions
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            ("POST", "/api/session/create"): Endpoint(
                handler=self._create,
                tag="sessions",
                summary="Make a session: a shell whose state lasts from call to call.",
                body=CreateSessionRequest,
                reply=CreateSessionReply,
                errors=("SESSION_ALREADY_EXISTS", "RESOURCE_BUSY", "INTERNAL_ERROR"),
            ),
            ("POST", "/api/session/delete"): Endpoint(
                handler=self._delete,
                tag="sessions",
                summary="End a session and all that runs in it; at once.",
                body=DeleteSessionRequest,
                reply=DeleteSessionReply,
                errors=("INTERNAL_ERROR",),
            ),
            ("GET", "/api/session/list"): Endpoint(
                handler=self._list,
                tag="sessions",
                summary="The ids of all sessions.",
                reply=ListSessionsReply,
            ),
            ("GET", "/api/session/{id}"): Endpoint(
                handler=self._show,
                tag="sessions",
                summary="Where a session is and what it does.",
                reply=SessionReply,
                errors=("UNKNOWN_ERROR",),
            ),
        }

    async def _create(self, request: Request) -> StreamResponse:
        wanted = await self._bodies.read(request, _create_decoder)
        session_id = _id(wanted.id, field="id") if wanted.id else _fresh_id()
        for name, value in (wanted.env or {}).items():
            if problem := name_problem(name):
                raise invalid(f"env.{name}", problem)
            if value is not None and "\0" in value:
                raise invalid(f"env.{name}", "a value cannot hold NUL")
        timeout = wanted.command_timeout_ms
        session = await self._sessions.create(
            session_id,
            env=wanted.env,
            cwd=checked(wanted.cwd, field="cwd") if wanted.cwd else None,
            timeout=None if timeout is None else timeout / 1000,
        )
        cwd = shown(session.directory)
        return reply(
            CreateSessionReply(
                id=session_id,
                session_id=session_id,
                message=f"the session {session_id} is there",
                cwd=cwd,
                shell=session.shell,
                data=SessionPlace(id=session_id, cwd=cwd),
                container_placement_id=self._sessions.placement,
            )
        )

    async def _delete(self, request: Request) -> StreamResponse:
        wanted = await self._bodies.read(request, _delete_decoder)
        session_id = _id(wanted.session_id, field="sessionId")
        self._sessions.delete(session_id)
        return reply(DeleteSessionReply(session_id=session_id))

    async def _list(self, _: Request) -> StreamResponse:
        return reply(ListSessionsReply(data=self._sessions.ids()))

    async def _show(self, request: Request) -> StreamResponse:
        session_id = request.segments["id"]
        session = self._sessions.known(session_id)
        if session is None:
            raise Fault(
                "UNKNOWN_ERROR",
                f"there is no session {session_id}",
                status=404,
                context={"sessionId": session_id},
            )
        return reply(
            SessionReply(
                id=session_id,
                cwd=shown(session.directory),
                shell=session.shell,
                busy=session.is_busy,
                waiting=session.waiting,
                command_timeout_ms=UNSET if session.timeout is None else session.timeout * 1000,
            )
        )


def _id(given: str | None, *, field: str) -> str:
    if not given:
        raise invalid(field, "give a session's id")
    if given == NO_SESSION:
        raise invalid(field, f"{NO_SESSION} means that there is no session")
    found = named(given)
    assert found is not None
    return found


def _fresh_id() -> str:
    return f"session_{time.time_ns() // 1_000_000}_{os.urandom(6).hex()}"
