"""files, changed as a tree: made, moved, copied, deleted, linked, and given other rights."""

import os
from collections.abc import Callable

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.disk import Disk, told
from sandpod_runtime.files import copying, modes, tree
from sandpod_runtime.files.places import Place, Places
from sandpod_runtime.models.files import (
    ChmodReply,
    ChmodRequest,
    CopyRequest,
    DeleteRequest,
    MakeDirectoryReply,
    MakeDirectoryRequest,
    MoveReply,
    MoveRequest,
    PathReply,
    RenameRequest,
    SymlinkReply,
    SymlinkRequest,
)
from sandpod_runtime.paths import checked
from sandpod_runtime.routing import Endpoint, Handler, Model, Routes
from sandpod_runtime.surfaces.files_errors import CHANGING
from sandpod_runtime.wire import Bodies, Request, reply

_delete_decoder = msgspec.json.Decoder(DeleteRequest)
_rename_decoder = msgspec.json.Decoder(RenameRequest)
_move_decoder = msgspec.json.Decoder(MoveRequest)
_copy_decoder = msgspec.json.Decoder(CopyRequest)
_directory_decoder = msgspec.json.Decoder(MakeDirectoryRequest)
_chmod_decoder = msgspec.json.Decoder(ChmodRequest)
_symlink_decoder = msgspec.json.Decoder(SymlinkRequest)


class FileTree:
    def __init__(self, *, places: Places, disk: Disk, bodies: Bodies) -> None:
        self._places = places
        self._disk = disk
        self._bodies = bodies

    def routes(self) -> Routes:
        def endpoint(handler: Handler, summary: str, body: Model, answer: Model) -> Endpoint:
            return Endpoint(
                handler=handler, tag="files", summary=summary, body=body, reply=answer, errors=CHANGING
            )

        return {
            ("POST", "/api/delete"): endpoint(
                self._delete, "Delete a file, or with `recursive` a directory.", DeleteRequest, PathReply
            ),
            ("POST", "/api/rename"): endpoint(
                self._rename, "Rename a file or directory, as mv does.", RenameRequest, MoveReply
            ),
            ("POST", "/api/move"): endpoint(
                self._move, "Move a file or directory, as mv does.", MoveRequest, MoveReply
            ),
            ("POST", "/api/files/copy"): endpoint(
                self._copy, "Copy a file, or with `recursive` a directory.", CopyRequest, MoveReply
            ),
            ("POST", "/api/mkdir"): endpoint(
                self._mkdir,
                "Make a directory, or with `recursive` all that are missing.",
                MakeDirectoryRequest,
                MakeDirectoryReply,
            ),
            ("POST", "/api/files/chmod"): endpoint(
                self._chmod, "Set the permissions of a file or a tree.", ChmodRequest, ChmodReply
            ),
            ("POST", "/api/files/symlink"): endpoint(
                self._symlink, "Make a symbolic link.", SymlinkRequest, SymlinkReply
            ),
        }

    async def _delete(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _delete_decoder)
        place = self._places.of(body)

        def work(check: Callable[[], None]) -> None:
            tree.delete(place.path, recursive=body.recursive, check=check)

        with told(place.given, "file.delete"):
            await self._disk.run_long(work)
        return reply(PathReply(path=place.given))

    async def _rename(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _rename_decoder)
        source = self._places.find(body.old_path, session_id=body.session_id, field="oldPath")
        target = self._places.find(body.new_path, session_id=body.session_id, field="newPath")
        return await self._moved(source, target, operation="file.rename")

    async def _move(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _move_decoder)
        return await self._moved(*self._ends(body), operation="file.move")

    async def _moved(self, source: Place, target: Place, *, operation: str) -> StreamResponse:
        def work(check: Callable[[], None]) -> str:
            return copying.move(source.path, target.path, check=check)

        with told(source.given, operation):
            await self._disk.run_long(work)
        return reply(MoveReply(path=source.given, new_path=target.given))

    async def _copy(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _copy_decoder)
        source, target = self._ends(body)

        def work(check: Callable[[], None]) -> str:
            return copying.copy(source.path, target.path, recursive=body.recursive, check=check)

        with told(source.given, "file.copy"):
            await self._disk.run_long(work)
        return reply(MoveReply(path=source.given, new_path=target.given))

    def _ends(self, body: MoveRequest) -> tuple[Place, Place]:
        return (
            self._places.find(body.source_path, session_id=body.session_id, field="sourcePath"),
            self._places.find(body.destination_path, session_id=body.session_id, field="destinationPath"),
        )

    async def _mkdir(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _directory_decoder)
        place = self._places.of(body)
        mode = None if body.mode is None else modes.permission_bits(body.mode)
        with told(place.given, "directory.create"):
            await self._disk.run(tree.make_directory, place.path, recursive=body.recursive, mode=mode)
        return reply(MakeDirectoryReply(path=place.given, recursive=body.recursive))

    async def _chmod(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _chmod_decoder)
        place = self._places.of(body)
        bits = modes.permission_bits(body.mode)

        def work(check: Callable[[], None]) -> int:
            return modes.change(place.path, bits, recursive=body.recursive, check=check)

        with told(place.given, "file.chmod"):
            changed = await self._disk.run_long(work)
        return reply(ChmodReply(path=place.given, mode=f"{bits:04o}", changed=changed))

    async def _symlink(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _symlink_decoder)
        place = self._places.of(body)
        target = checked(body.target, field="target")
        with told(place.given, "file.symlink"):
            await self._disk.run(os.symlink, target, place.path)
        return reply(SymlinkReply(path=place.given, target=target))
