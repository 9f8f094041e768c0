"""files, read: as JSON, whole or in ranges of bytes or lines, and as a stream of events."""

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Literal

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.disk import Disk, told
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.files.contents import in_base64, in_text
from sandpod_runtime.files.editing import too_large
from sandpod_runtime.files.places import Place, Places
from sandpod_runtime.files.replacing import LARGEST
from sandpod_runtime.files.source import PIECE, Source
from sandpod_runtime.models.files import (
    ChunkEvent,
    CompleteEvent,
    ErrorEvent,
    MetadataEvent,
    PathRequest,
    ReadReply,
    ReadRequest,
)
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.sse import ascii_json, open_stream
from sandpod_runtime.surfaces.files_errors import READING
from sandpod_runtime.wire import JSON_HEADERS, Bodies, Request, encode, reply

# Larger contents are not put together in memory.
_AT_ONCE = 4 * PIECE
_MOST_SCANNED = 1 << 30
_READ = "file.read"

_read_decoder = msgspec.json.Decoder(ReadRequest)
_stream_decoder = msgspec.json.Decoder(PathRequest)


class FileReading:
    def __init__(self, *, places: Places, disk: Disk, bodies: Bodies) -> None:
        self._places = places
        self._disk = disk
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            ("POST", "/api/read"): Endpoint(
                handler=self._read,
                tag="files",
                summary="A file's content, or a range of its bytes or lines.",
                body=ReadRequest,
                reply=ReadReply,
                errors=READING,
            ),
            ("POST", "/api/read/stream"): Endpoint(
                handler=self._streamed,
                tag="files",
                summary="A file's content piece by piece; what goes wrong is an event too.",
                body=PathRequest,
                events=(MetadataEvent, ChunkEvent, CompleteEvent, ErrorEvent),
            ),
        }

    async def _read(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _read_decoder)
        place = self._places.of(body)
        _check_ranges(body)
        with told(place.given, _READ):
            source = await self._opened(place)
            try:
                found, begin, end = await self._range(body, place, source)
                if end - begin > LARGEST:
                    hint = "read it in parts (offset and length), or GET /api/files/raw"
                    raise too_large(place.given, end - begin, operation=_READ, suggestion=hint)
                return await self._sent(request, source, found, begin=begin, end=end, charset=body.charset)
            finally:
                source.close()

    async def _opened(self, place: Place) -> Source:
        try:
            return await self._disk.made(partial(Source, place.path), discard=Source.close)
        except IsADirectoryError as error:
            # What 0.12 says of a directory as well.
            raise Fault(
                "FILE_NOT_FOUND",
                f"{place.given}: file not found: this is a directory",
                context={"path": place.given, "operation": _READ},
                operation=_READ,
            ) from error

    async def _range(self, body: ReadRequest, place: Place, source: Source) -> tuple[ReadReply, int, int]:
        encoding = _encoding(body.encoding, source)
        found = ReadReply(
            path=place.given,
            content="",
            encoding=encoding,
            is_binary=encoding == "base64",
            mime_type=source.mime,
            size=source.size,
        )
        begin, end = 0, LARGEST if source.has_unknown_size else source.size
        if body.start_line is not None or body.end_line is not None:
            if source.size > _MOST_SCANNED:
                hint = (
                    f"lines are counted in files of at most {_MOST_SCANNED >> 20} MiB; use offset and length"
                )
                raise too_large(place.given, source.size, operation=_READ, suggestion=hint)
            first = body.start_line or 1
            span = await self._disk.run(source.lines, first=first, last=body.end_line)
            begin, end = span.begin, span.end
            found.start_line = first
            found.end_line = min(body.end_line or span.total, span.total)
            found.total_lines = span.total
        elif body.offset is not None or body.length is not None:
            begin = min(body.offset or 0, end)
            end = end if body.length is None else min(end, begin + body.length)
            found.offset = begin
            found.length = end - begin
        return found, begin, end

    async def _sent(
        self, request: Request, source: Source, found: ReadReply, *, begin: int, end: int, charset: str
    ) -> StreamResponse:
        pieces = source.pieces(self._disk, begin=begin, end=end, step=_AT_ONCE)
        texts = in_base64(pieces) if found.is_binary else in_text(pieces, charset=charset)
        if end - begin <= _AT_ONCE or source.has_unknown_size:
            found.content = "".join([text async for text in texts])
            return reply(found)
        # A string cannot hold unescaped quotes: this is where the content belongs, and nothing else.
        head, tail = encode(found).split(b'"content":""', 1)
        response = StreamResponse(headers=JSON_HEADERS)
        await response.prepare(request)
        await response.write(head + b'"content":"')
        try:
            async for text in texts:
                await response.write(encode(text)[1:-1])
        except OSError as error:
            # Only a connection that breaks off tells the client that this is not all.
            raise ConnectionResetError("the file cannot be read to its end") from error
        await response.write(b'"' + tail)
        return response

    async def _streamed(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _stream_decoder)
        response = await open_stream(request)
        try:
            place = self._places.of(body)
            with told(place.given, _READ):
                source = await self._opened(place)
                try:
                    async for event in self._events(source):
                        await response.write(event)
                finally:
                    source.close()
        except Fault as fault:
            await response.write(_event("error", error=fault.message))
        return response

    async def _events(self, source: Source) -> AsyncIterator[bytes]:
        encoding = _encoding(None, source)
        yield _event(
            "metadata",
            mimeType=source.mime,
            size=source.size,
            isBinary=encoding == "base64",
            encoding=encoding,
        )
        read = 0

        async def counted(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            nonlocal read
            async for piece in pieces:
                read += len(piece)
                yield piece

        end = LARGEST if source.has_unknown_size else source.size
        pieces = counted(source.pieces(self._disk, begin=0, end=end, step=PIECE))
        async for text in in_base64(pieces) if encoding == "base64" else in_text(pieces):
            yield b'data: {"type":"chunk","data":%b}\n\n' % ascii_json(text)
        yield _event("complete", bytesRead=read)


def _encoding(asked: str | None, source: Source) -> Literal["utf-8", "base64"]:
    if asked == "base64":
        return "base64"
    if asked in ("utf-8", "utf8"):
        return "utf-8"
    return "utf-8" if source.is_text else "base64"


def _check_ranges(body: ReadRequest) -> None:
    by_lines = body.start_line is not None or body.end_line is not None
    if by_lines and (body.offset is not None or body.length is not None):
        raise invalid("startLine", "give lines or bytes (offset, length), not both")
    if by_lines and body.charset == "utf-16":
        raise invalid("charset", "lines are found by the byte of a newline, which utf-16 does not have")
    if body.end_line is not None and body.end_line < (body.start_line or 1):
        raise invalid("endLine", "this is before startLine")


def _event(kind: str, **fields: object) -> bytes:
    return b"data: %b\n\n" % json.dumps({"type": kind, **fields}, separators=(",", ":")).encode("ascii")
