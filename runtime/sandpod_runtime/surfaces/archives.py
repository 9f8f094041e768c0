"""archives: a directory out as one stream (`GET /api/files/archive`), and one stream into a directory
(`PUT`).
"""

from collections.abc import Callable

from aiohttp.web_response import StreamResponse

from sandpod_runtime.disk import Disk
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.archives import PackQuery, UnpackQuery, UnpackReply
from sandpod_runtime.paths import checked, resolved
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.session.ids import named
from sandpod_runtime.state import StateDirectory
from sandpod_runtime.wire import Request

MOST_AT_ONCE = 8
_ERRORS = (
    "FILE_NOT_FOUND",
    "PERMISSION_DENIED",
    "NOT_DIRECTORY",
    "NAME_TOO_LONG",
    "TOO_MANY_LINKS",
    "FILESYSTEM_ERROR",
    "RESOURCE_BUSY",
)


class Archives:
    def __init__(self, *, disk: Disk, state: StateDirectory, directory: Callable[[str | None], str]) -> None:
        """`directory` says where the relative paths of a session start."""
        self._disk = disk
        self._state = state
        self._directory = directory
        self._slots = Slots("archives being packed or unpacked", MOST_AT_ONCE)

    def routes(self) -> Routes:
        return {
            ("GET", "/api/files/archive"): Endpoint(
                handler=self._pack,
                tag="archives",
                summary="A directory or a file as a tar.gz, tar or zip, packed while it is sent.",
                query=PackQuery,
                media="application/gzip",
                errors=_ERRORS,
            ),
            ("PUT", "/api/files/archive"): Endpoint(
                handler=self._unpack,
                tag="archives",
                summary="Unpack the body, a tar, tar.gz or zip, into a directory, and never out of it.",
                query=UnpackQuery,
                accepts="application/octet-stream",
                reply=UnpackReply,
                errors=(*_ERRORS, "FILE_TOO_LARGE", "NO_SPACE", "READ_ONLY", "OPERATION_INTERRUPTED"),
            ),
        }

    async def _pack(self, request: Request) -> StreamResponse:
        query: PackQuery = queried(request, PackQuery)
        path = self._resolved(query.path, query.session_id)
        # Here and below: a cold start does without what knows the formats.
        from sandpod_runtime.archive.serving import send

        with self._slots.one():
            apart = await self._disk.run(self._state.below, path)
            return await send(request, query, path=path, apart=apart, disk=self._disk)

    async def _unpack(self, request: Request) -> StreamResponse:
        query: UnpackQuery = queried(request, UnpackQuery)
        path = self._resolved(query.path, query.session_id)
        from sandpod_runtime.archive.serving import receive

        with self._slots.one():
            return await receive(request, query, path=path, disk=self._disk)

    def _resolved(self, path: str, session: str | None) -> str:
        return resolved(checked(path), base=self._directory(named(session)))
