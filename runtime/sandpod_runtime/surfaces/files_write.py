"""files, written: as a whole, at the end, between lines, or by exact replacements."""

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.disk import Disk, told
from sandpod_runtime.files import editing
from sandpod_runtime.files.contents import decoded, from_text
from sandpod_runtime.files.modes import permission_bits
from sandpod_runtime.files.places import Place, Places
from sandpod_runtime.files.replacing import Edit
from sandpod_runtime.models.files import (
    AppendRequest,
    InsertReply,
    InsertRequest,
    ReplaceReply,
    ReplaceRequest,
    WriteReply,
    WriteRequest,
)
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.surfaces.files_errors import WRITING
from sandpod_runtime.wire import Bodies, Request, reply

T = TypeVar("T")
_write_decoder = msgspec.json.Decoder(WriteRequest)
_append_decoder = msgspec.json.Decoder(AppendRequest)
_insert_decoder = msgspec.json.Decoder(InsertRequest)
_replace_decoder = msgspec.json.Decoder(ReplaceRequest)


class FileWriting:
    def __init__(self, *, places: Places, disk: Disk, bodies: Bodies) -> None:
        self._places = places
        self._disk = disk
        self._bodies = bodies
        self._edited: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def routes(self) -> Routes:
        return {
            ("POST", "/api/write"): Endpoint(
                handler=self._write,
                tag="files",
                summary="Write a file, at once as a whole, with the directories above it.",
                body=WriteRequest,
                reply=WriteReply,
                errors=(*WRITING, "FILE_EXISTS"),
            ),
            ("POST", "/api/files/append"): Endpoint(
                handler=self._append,
                tag="files",
                summary="Put content at the end of a file, which is made if it is missing.",
                body=AppendRequest,
                reply=WriteReply,
                errors=WRITING,
            ),
            ("POST", "/api/files/insert"): Endpoint(
                handler=self._insert,
                tag="files",
                summary="Put lines between the lines of a file.",
                body=InsertRequest,
                reply=InsertReply,
                errors=WRITING,
            ),
            ("POST", "/api/files/replace"): Endpoint(
                handler=self._replace,
                tag="files",
                summary="Replace exact texts, all of them or, when one does not fit, none.",
                body=ReplaceRequest,
                reply=ReplaceReply,
                errors=WRITING,
            ),
        }

    async def _write(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _write_decoder)
        place = self._places.of(body)
        mode = None if body.mode is None else permission_bits(body.mode)

        def work() -> int:
            parts = decoded(body.content, encoding=body.encoding, charset=body.charset)
            return editing.write(place.path, parts, mode=mode, create_only=body.create_only)

        with told(place.given, "file.write"):
            return reply(WriteReply(path=place.given, size=await self._disk.run(work)))

    async def _append(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _append_decoder)
        place = self._places.of(body)

        def work() -> int:
            return editing.append(place.path, decoded(body.content, encoding=body.encoding))

        with told(place.given, "file.append"):
            size = await self._one_at_a_time(place, work)
        return reply(WriteReply(path=place.given, size=size))

    async def _insert(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _insert_decoder)
        place = self._places.of(body)

        def work() -> tuple[int, int]:
            return editing.insert(place.path, from_text(body.content), line=body.line)

        with told(place.given, "file.insert"):
            size, total = await self._one_at_a_time(place, work, may_last=True)
        return reply(InsertReply(path=place.given, size=size, total_lines=total))

    async def _replace(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _replace_decoder)
        place = self._places.of(body)
        edits = [
            Edit(old=edit.old.encode(), new=edit.new.encode(), everywhere=edit.all) for edit in body.edits
        ]

        def work() -> tuple[int, list[int]]:
            return editing.replace(place.path, edits, given=place.given)

        with told(place.given, "file.replace"):
            size, counts = await self._one_at_a_time(place, work, may_last=True)
        return reply(ReplaceReply(path=place.given, size=size, replacements=counts))

    async def _one_at_a_time(self, place: Place, work: Callable[[], T], *, may_last: bool = False) -> T:
        """Two edits of one file at once would lose one of them; so would one whose client left too early."""
        name = await self._disk.run(os.path.realpath, place.path)
        lock = self._edited.setdefault(name, asyncio.Lock())

        async def alone() -> T:
            async with lock:
                if may_last:  # many edits of a large file: seconds, in which others want a thread
                    return await self._disk.run_long(lambda _: work())
                return await self._disk.run(work)

        task = asyncio.create_task(alone())
        # Once the client has left, nobody is there for what goes wrong; asyncio would log it.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)
