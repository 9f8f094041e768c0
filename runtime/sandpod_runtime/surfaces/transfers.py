"""transfers: files as raw bytes. `GET` and `PUT /api/files/raw` in one request, uploads in several."""

from functools import partial

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.disk import Disk, told
from sandpod_runtime.errors import Fault
from sandpod_runtime.files.draft import Draft
from sandpod_runtime.files.modes import permission_bits
from sandpod_runtime.files.places import Place, Places
from sandpod_runtime.files.receiving import receive
from sandpod_runtime.files.source import Source
from sandpod_runtime.files.uploads import Upload, Uploads
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.common import Reply
from sandpod_runtime.models.transfers import (
    PartQuery,
    PutQuery,
    PutReply,
    RawQuery,
    UploadReply,
    UploadRequest,
)
from sandpod_runtime.paths import shown
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.surfaces.files_errors import READING, WRITING
from sandpod_runtime.surfaces.transfers_sending import send
from sandpod_runtime.wire import Bodies, Request, reply

MOST_AT_ONCE = 64
_RAW = "application/octet-stream"
_READ, _WRITE, _UPLOAD = "file.read", "file.write", "file.upload"
_upload_decoder = msgspec.json.Decoder(UploadRequest)


class Transfers:
    def __init__(self, *, places: Places, disk: Disk, bodies: Bodies, uploads: Uploads) -> None:
        self._places = places
        self._disk = disk
        self._bodies = bodies
        self._uploads = uploads
        self._slots = Slots("file transfers", MOST_AT_ONCE)

    def routes(self) -> Routes:
        one = "/api/files/uploads/{id}"
        download = Endpoint(
            handler=self._download,
            tag="transfers",
            summary="A file's bytes; Range, ETag and If-None-Match work as on a web server.",
            query=RawQuery,
            media=_RAW,
            errors=(*READING, "IS_DIRECTORY", "RESOURCE_BUSY"),
        )
        return {
            ("GET", "/api/files/raw"): download,
            ("HEAD", "/api/files/raw"): download,
            ("PUT", "/api/files/raw"): Endpoint(
                handler=self._put,
                tag="transfers",
                summary="Write the body to a file, once all of it is there and its SHA-256 is right.",
                query=PutQuery,
                accepts=_RAW,
                reply=PutReply,
                errors=(*WRITING, "FILE_EXISTS", "RESOURCE_BUSY", "OPERATION_INTERRUPTED"),
            ),
            ("POST", "/api/files/uploads"): Endpoint(
                handler=self._create,
                tag="transfers",
                summary="Begin an upload whose parts are sent one after the other.",
                body=UploadRequest,
                reply=UploadReply,
                errors=(*WRITING, "RESOURCE_BUSY"),
            ),
            ("GET", one): Endpoint(
                handler=self._look,
                tag="transfers",
                summary="How far an upload is.",
                reply=UploadReply,
                errors=("FILE_NOT_FOUND",),
            ),
            ("PUT", one): Endpoint(
                handler=self._part,
                tag="transfers",
                summary="The next part; what arrives of it counts, also when the connection breaks.",
                query=PartQuery,
                accepts=_RAW,
                reply=UploadReply,
                errors=("FILE_NOT_FOUND", "NO_SPACE", "RESOURCE_BUSY", "OPERATION_INTERRUPTED"),
            ),
            ("DELETE", one): Endpoint(
                handler=self._cancel,
                tag="transfers",
                summary="Give an upload up.",
                reply=Reply,
                errors=("FILE_NOT_FOUND", "RESOURCE_BUSY"),
            ),
            ("POST", f"{one}/complete"): Endpoint(
                handler=self._complete,
                tag="transfers",
                summary="Check size and SHA-256 of an upload, and make it the file.",
                reply=PutReply,
                errors=(*WRITING, "RESOURCE_BUSY"),
            ),
        }

    async def _download(self, request: Request) -> StreamResponse:
        query: RawQuery = queried(request, RawQuery)
        place = self._places.find(query.path, session_id=query.session_id)
        with told(place.given, _READ), self._slots.one():
            source = await self._disk.made(partial(Source, place.path), discard=Source.close)
            try:
                return await send(request, source, disk=self._disk, path=place.given)
            finally:
                source.close()

    async def _put(self, request: Request) -> StreamResponse:
        query: PutQuery = queried(request, PutQuery)
        place = self._places.find(query.path, session_id=query.session_id)
        make = partial(
            Draft,
            place.path,
            mode=None if query.mode is None else permission_bits(query.mode),
            create_only=query.create_only,
            hashed=query.sha256 is not None,
        )
        with told(place.given, _WRITE), self._slots.one():
            draft = await self._disk.made(make, discard=Draft.discard)
            try:
                await receive(request, draft, disk=self._disk)
                _check_digest(draft, query.sha256, place=place, operation=_WRITE)
                await self._disk.run(draft.publish)
            finally:
                self._disk.later(draft.discard)
        return _put_reply(draft, place)

    async def _create(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _upload_decoder)
        place = self._places.of(body)
        mode = None if body.mode is None else permission_bits(body.mode)
        make = partial(Draft, place.path, mode=mode, hashed=body.sha256 is not None)
        self._uploads.admit()
        try:
            with told(place.given, _UPLOAD):
                draft = await self._disk.made(make, discard=Draft.discard)
        except BaseException:
            self._uploads.give_up()
            raise
        upload = Upload(place, draft, size=body.size, sha256=body.sha256)
        self._uploads.add(upload)
        return _upload_reply(upload)

    async def _look(self, request: Request) -> StreamResponse:
        return _upload_reply(self._uploads.find(request.segments["id"]))

    async def _part(self, request: Request) -> StreamResponse:
        query: PartQuery = queried(request, PartQuery)
        upload = self._uploads.find(request.segments["id"])
        place, draft = upload.place, upload.draft
        with told(place.given, _UPLOAD), self._uploads.alone(upload), self._slots.one():
            if query.offset != draft.size:
                raise Fault(
                    "OPERATION_INTERRUPTED",
                    f"this upload is at byte {draft.size}: send on from there",
                    context={"path": place.given, "operation": _UPLOAD, "offset": draft.size},
                    operation=_UPLOAD,
                )
            await receive(request, draft, disk=self._disk, most=upload.size, keep=True)
        return _upload_reply(upload)

    async def _cancel(self, request: Request) -> StreamResponse:
        upload = self._uploads.find(request.segments["id"])
        with self._uploads.alone(upload):
            self._uploads.remove(upload)
        return reply(Reply())

    async def _complete(self, request: Request) -> StreamResponse:
        upload = self._uploads.find(request.segments["id"])
        place, draft = upload.place, upload.draft
        with told(place.given, _UPLOAD), self._uploads.alone(upload):
            if upload.size is not None and draft.size != upload.size:
                raise _unfit(
                    "size",
                    f"{draft.size} of {upload.size} bytes are here",
                    place=place,
                    operation=_UPLOAD,
                    offset=draft.size,
                )
            try:
                _check_digest(draft, upload.sha256, place=place, operation=_UPLOAD)
            except Fault:
                self._uploads.remove(upload)  # no further part could make it right
                raise
            await self._disk.run(draft.publish)
            self._uploads.remove(upload)
        return _put_reply(draft, place)


def _check_digest(draft: Draft, expected: str | None, *, place: Place, operation: str) -> None:
    actual = draft.sha256
    if expected is None or actual is None or actual == expected.lower():
        return
    raise _unfit(
        "sha256",
        f"{expected.lower()} was expected, and what came has {actual}; nothing was changed",
        place=place,
        operation=operation,
        expected=expected.lower(),
        actual=actual,
    )


def _unfit(field: str, message: str, *, place: Place, operation: str, **context: object) -> Fault:
    return Fault(
        "VALIDATION_FAILED",
        f"{shown(place.given)}: {field}: {message}",
        context={
            "path": place.given,
            "operation": operation,
            "validationErrors": [{"field": field, "message": message}],
            **context,
        },
        operation=operation,
    )


def _put_reply(draft: Draft, place: Place) -> StreamResponse:
    return reply(PutReply(path=place.given, size=draft.size, sha256=draft.sha256 or msgspec.UNSET))


def _upload_reply(upload: Upload) -> StreamResponse:
    size = msgspec.UNSET if upload.size is None else upload.size
    return reply(UploadReply(id=upload.id, path=upload.place.given, offset=upload.draft.size, size=size))
