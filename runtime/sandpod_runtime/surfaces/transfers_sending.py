"""A file as the answer to a GET: whole, a range of it, or the word that it has not changed."""

import asyncio
from contextlib import aclosing

from aiohttp.web_response import StreamResponse

from sandpod_runtime.disk import Disk
from sandpod_runtime.errors import Fault
from sandpod_runtime.files import ranges
from sandpod_runtime.files.receiving import IDLE_SECONDS
from sandpod_runtime.files.source import Source
from sandpod_runtime.wire import HEADERS, Request, fault_reply

# Less than a MiB with what Python adds: from there on each piece would cost a mapping (hardening.py).
_STEP = (1 << 20) - 4096
# Longer than any file: what the kernel makes up while it is read has no size.
_UNKNOWN_END = 1 << 62


async def send(request: Request, source: Source, *, disk: Disk, path: str) -> StreamResponse:
    headers = _headers(source)
    asked = request.headers
    modified = source.found.st_mtime
    if ranges.is_known(
        if_none_match=asked.get("If-None-Match"),
        if_modified_since=asked.get("If-Modified-Since"),
        etag=source.etag,
        modified=modified,
    ):
        return StreamResponse(status=304, headers=headers)
    if source.has_unknown_size:
        return await _sent(request, StreamResponse(headers=headers), source, disk=disk, part=None)
    part = None
    if ranges.still_applies(asked.get("If-Range"), etag=source.etag, modified=modified):
        try:
            part = ranges.wanted(asked.get("Range"), size=source.size)
        except ranges.UnsatisfiableError:
            return _unsatisfiable(request, source, path=path)
    begin, end = part or (0, source.size)
    response = StreamResponse(status=206 if part else 200, headers=headers)
    if part:
        response.headers["Content-Range"] = f"bytes {begin}-{end - 1}/{source.size}"
    response.content_length = end - begin
    return await _sent(request, response, source, disk=disk, part=(begin, end))


def _headers(source: Source) -> dict[str, str]:
    return HEADERS | {
        "Content-Type": source.mime,
        "Accept-Ranges": "bytes",
        "ETag": source.etag,
        "Last-Modified": ranges.http_date(source.found.st_mtime),
        "Cache-Control": "no-cache",
        # A page of the sandbox's is not to run because a browser guesses what it might be.
        "X-Content-Type-Options": "nosniff",
    }


async def _sent(
    request: Request,
    response: StreamResponse,
    source: Source,
    *,
    disk: Disk,
    part: tuple[int, int] | None,
) -> StreamResponse:
    begin, end = part or (0, _UNKNOWN_END)
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    try:
        async with aclosing(source.pieces(disk, begin=begin, end=end, step=_STEP)) as pieces:
            async for piece in pieces:
                begin += len(piece)
                async with asyncio.timeout(IDLE_SECONDS):
                    await response.write(piece)
    except OSError as error:
        raise ConnectionResetError("the file cannot be read to its end") from error
    if part and begin < end:
        # Only a connection that breaks off tells the client that this is not all.
        raise ConnectionResetError("the file has become shorter")
    return response


def _unsatisfiable(request: Request, source: Source, *, path: str) -> StreamResponse:
    message = f"this range begins behind the end of the file, which has {source.size} bytes"
    response = fault_reply(
        Fault(
            "VALIDATION_FAILED",
            f"{path}: {message}",
            status=416,
            context={
                "path": path,
                "operation": "file.read",
                "validationErrors": [{"field": "Range", "message": message}],
            },
            operation="file.read",
        ),
        request_id=request.id,
    )
    response.headers["Content-Range"] = f"bytes */{source.size}"
    return response
