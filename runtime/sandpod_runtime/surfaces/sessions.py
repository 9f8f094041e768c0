"""Sessions: making, showing and deleting the shells that other surfaces use by their ids."""

import os
import time

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET, UnsetType

from sandpod_runtime.environment import name_problem
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.models.sessions import (
    CreateSessionReply,
    CreateSessionRequest,
    DeleteSessionReply,
    DeleteSessionRequest,
    ListSessionsReply,
    RestoreSessionsReply,
    SavedSession,
    SaveSessionsReply,
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
_PLAIN_SHELL = (
    "This image has no bash. Sessions run in its sh, which keeps the directory, variables, functions, "
    "aliases and options from call to call; it cannot list functions and traps, so that they are neither "
    "saved nor given to processes."
)


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
            ("POST", "/api/session/save"): Endpoint(
                handler=self._save,
                tag="sessions",
                summary="Write the states of all sessions to the state directory.",
                reply=SaveSessionsReply,
                errors=("FILE_NOT_FOUND", "NO_SPACE", "READ_ONLY", "PERMISSION_DENIED", "FILESYSTEM_ERROR"),
            ),
            ("POST", "/api/session/restore"): Endpoint(
                handler=self._restore,
                tag="sessions",
                summary="Take over the saved sessions that are not there.",
                reply=RestoreSessionsReply,
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
                note=_note(session.shell),
                data=SessionPlace(id=session_id, cwd=cwd),
                container_placement_id=self._sessions.placement,
            )
        )

    async def _delete(self, request: Request) -> StreamResponse:
        wanted = await self._bodies.read(request, _delete_decoder)
        session_id = _id(wanted.session_id, field="sessionId")
        await self._sessions.delete(session_id)
        return reply(DeleteSessionReply(session_id=session_id))

    async def _list(self, _: Request) -> StreamResponse:
        return reply(ListSessionsReply(data=self._sessions.ids()))

    async def _show(self, request: Request) -> StreamResponse:
        session_id = request.segments["id"]
        session = self._sessions.known(session_id)
        if session is None and (saved := self._sessions.saved(session_id)):
            return reply(
                SessionReply(
                    id=session_id,
                    cwd=shown(os.fsdecode(saved.directory)),
                    state="saved",
                    waiting=0,
                    shell=saved.shell,
                    note=_note(saved.shell),
                    command_timeout_ms=_milliseconds(saved.timeout),
                    missing=saved.lost,
                )
            )
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
                state="busy" if session.is_busy else "idle",
                waiting=session.waiting,
                shell=session.shell,
                note=_note(session.shell),
                command_timeout_ms=_milliseconds(session.timeout),
                missing=session.missing,
            )
        )

    async def _save(self, _: Request) -> StreamResponse:
        found = await self._sessions.save_all()
        return reply(
            SaveSessionsReply(
                sessions=[SavedSession(id=session_id, lost=lost) for session_id, lost in found.items()],
                persistent=self._sessions.persistent,
            )
        )

    async def _restore(self, _: Request) -> StreamResponse:
        restored, problems = await self._sessions.restore_all()
        return reply(RestoreSessionsReply(restored=restored, problems=problems))


def _note(shell: str) -> str | UnsetType:
    return UNSET if shell == "bash" else _PLAIN_SHELL


def _milliseconds(seconds: float | None) -> float | UnsetType:
    return UNSET if seconds is None else seconds * 1000


def _id(given: str | None, *, field: str) -> str:
    if not given:
        raise invalid(field, "give a session's id")
    if given == NO_SESSION:
        raise invalid(field, f"{NO_SESSION} means that there is no session")
    found = named(given, field=field)
    assert found is not None
    return found


def _fresh_id() -> str:
    return f"session_{time.time_ns() // 1_000_000}_{os.urandom(6).hex()}"
