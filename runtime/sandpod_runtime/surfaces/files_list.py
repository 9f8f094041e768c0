"""files, looked at: what is in a directory, what a path is, whether there is something."""

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec
from aiohttp.web_response import Response, StreamResponse
from msgspec import UNSET

from sandpod_runtime.clock import file_time
from sandpod_runtime.disk import Disk, told
from sandpod_runtime.files.accounts import groups, users
from sandpod_runtime.files.listing import Listing, entry
from sandpod_runtime.files.places import Places
from sandpod_runtime.models.files import (
    ExistsReply,
    ListOptions,
    ListReply,
    ListRequest,
    PathRequest,
    StatReply,
    StatRequest,
)
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.state import StateDirectory
from sandpod_runtime.surfaces.files_errors import COMMON
from sandpod_runtime.wire import JSON_HEADERS, Bodies, Request, encode, reply

# So many entries are looked at and put into JSON in one go.
_BATCH = 500

_list_decoder = msgspec.json.Decoder(ListRequest)
_stat_decoder = msgspec.json.Decoder(StatRequest)
_path_decoder = msgspec.json.Decoder(PathRequest)


class FileListing:
    def __init__(self, *, places: Places, state: StateDirectory, disk: Disk, bodies: Bodies) -> None:
        self._places = places
        self._state = state
        self._disk = disk
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            ("POST", "/api/list-files"): Endpoint(
                handler=self._list,
                tag="files",
                summary="What is in a directory, or in all directories below it.",
                body=ListRequest,
                reply=ListReply,
                errors=COMMON,
            ),
            ("POST", "/api/files/stat"): Endpoint(
                handler=self._stat,
                tag="files",
                summary="Kind, size, times, rights and owner of a path.",
                body=StatRequest,
                reply=StatReply,
                errors=COMMON,
            ),
            ("POST", "/api/exists"): Endpoint(
                handler=self._exists,
                tag="files",
                summary="Whether there is something; links are followed.",
                body=PathRequest,
                reply=ExistsReply,
            ),
        }

    async def _list(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _list_decoder)
        place = self._places.of(body)
        options = body.options or ListOptions()
        apart = await self._disk.run(self._state.below, place.path) if options.recursive else None
        listing = Listing(place.path, recursive=options.recursive, hidden=options.include_hidden, apart=apart)
        batches = _batches(listing, most=options.limit)
        with told(place.given, "directory.list"):
            batch = await self._disk.run(next, batches, _END)
        if batch.size < _BATCH:
            head, tail = _around(place.given, listing, count=batch.size)
            return Response(body=head + batch.data + tail, headers=JSON_HEADERS)
        response = StreamResponse(headers=JSON_HEADERS)
        await response.prepare(request)
        await response.write(_around(place.given, listing, count=0)[0] + batch.data)
        count = batch.size
        while (batch := await self._disk.run(next, batches, _END)).size:
            count += batch.size
            await response.write(b"," + batch.data)
        await response.write(_around(place.given, listing, count=count)[1])
        return response

    async def _stat(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _stat_decoder)
        place = self._places.of(body)

        def work() -> StatReply:
            found = os.stat(place.path, follow_symlinks=body.follow)
            users.refresh()
            groups.refresh()
            name = os.path.basename(place.path.rstrip("/"))
            return StatReply(
                path=place.given,
                file=entry(place.path, found, relative=name),
                accessed_at=file_time(found.st_atime),
                changed_at=file_time(found.st_ctime),
                links=found.st_nlink,
                device=found.st_dev,
                inode=found.st_ino,
            )

        with told(place.given, "file.stat"):
            return reply(await self._disk.run(work))

    async def _exists(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _path_decoder)
        place = self._places.of(body)
        exists = await self._disk.run(os.path.exists, place.path)
        return reply(ExistsReply(path=place.given, exists=exists))


class _Batch(NamedTuple):
    """Some entries as JSON, without the brackets of their list."""

    data: bytes
    size: int


_END = _Batch(data=b"", size=0)


def _batches(listing: Listing, *, most: int) -> Iterator[_Batch]:
    """Put into JSON here, in a disk's thread: a tree may have a million entries."""
    entries = listing.entries()
    while most and (batch := list(islice(entries, min(_BATCH, most)))):
        most -= len(batch)
        if not most and next(entries, None) is not None:
            listing.truncated = True
        yield _Batch(data=encode(batch)[1:-1], size=len(batch))


def _around(path: str, listing: Listing, *, count: int) -> tuple[bytes, bytes]:
    """What comes before and behind the entries."""
    found = ListReply(path=path, files=[], count=count, truncated=listing.truncated or UNSET)
    # A string cannot hold unescaped quotes: this is where the entries belong, and nothing else.
    head, tail = encode(found).split(b'"files":[]', 1)
    return head + b'"files":[', b"]" + tail
