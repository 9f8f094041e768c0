"""Archives on their way through HTTP: packed while they are sent, unpacked while they come."""

import asyncio
import logging
from urllib.parse import quote

from aiohttp.web_response import StreamResponse

from sandpod_runtime.archive.extract import extracted
from sandpod_runtime.archive.inflow import LimitError, Limits
from sandpod_runtime.archive.member import BadArchiveError
from sandpod_runtime.archive.pack import NothingToPackError, Summary, packed
from sandpod_runtime.archive.steps import EndedError, Steps
from sandpod_runtime.archive.unpack import Tally, shortly
from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.files.receiving import IDLE_SECONDS, next_part
from sandpod_runtime.models.archives import LeftOut, PackQuery, UnpackQuery, UnpackReply
from sandpod_runtime.search.excludes import excluded
from sandpod_runtime.search.walk import Paths
from sandpod_runtime.wire import HEADERS, Request, invite_body, reply

DEEPEST = 128
_MEDIA = {"tar.gz": "application/gzip", "tar": "application/x-tar", "zip": "application/zip"}
# A step for each packet would cost more than what is done in it.
_GATHERED = 262_144
_PACK, _UNPACK = "archive.create", "archive.extract"

logger = logging.getLogger(__name__)


async def send(
    request: Request, query: PackQuery, *, path: str, apart: str | None, disk: Disk
) -> StreamResponse:
    """Without `apart`, the runtime's own directory, which would come to life in another sandbox."""
    rules = excluded(request.query.getall("exclude", []), field="exclude")
    if apart is not None:
        rules.append(Paths(frozenset((apart,))))
    summary = Summary()
    work = packed(path, kind=query.format, level=query.level, rules=rules, summary=summary)
    steps = Steps(work, disk=disk)
    try:
        return await _sent(request, steps, query=query, path=path, summary=summary)
    finally:
        steps.close()


async def receive(request: Request, query: UnpackQuery, *, path: str, disk: Disk) -> StreamResponse:
    limits = Limits(
        total=query.max_bytes,
        file=query.max_file_bytes,
        entries=query.max_entries,
        ratio=query.max_ratio,
        depth=DEEPEST,
    )
    tally = Tally()
    work = extracted(path, kind=query.format, limits=limits, tally=tally, all_links=query.links == "all")
    steps: Steps[None, bytes] = Steps(work, disk=disk)
    try:
        await _push(request, steps)
    except EndedError:
        pass
    except ConnectionError:
        raise
    except (LimitError, BadArchiveError, OSError) as error:
        raise _failed(error, path=path, tally=tally) from error
    finally:
        steps.close()
    return reply(
        UnpackReply(
            path=query.path,
            entries=tally.entries,
            bytes=tally.bytes,
            skipped=_left_out(tally),
            skipped_count=tally.skipped_count,
        )
    )


async def _sent(
    request: Request, steps: Steps[bytes, None], *, query: PackQuery, path: str, summary: Summary
) -> StreamResponse:
    try:
        piece = await steps.next()
    except OSError as error:
        raise fault_of(error, path=path, operation=_PACK) from error
    except NothingToPackError as error:
        raise invalid("path", "this is neither a file nor a directory", code="INVALID_PATH") from error
    name = path.rstrip("/").rpartition("/")[2] or "root"
    response = StreamResponse(
        headers=HEADERS
        | {
            "Content-Type": _MEDIA[query.format],
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(shortly(name))}.{query.format}",
        }
    )
    await response.prepare(request)
    try:
        while True:
            if piece:
                # A client that takes nothing more must not keep its place for ever.
                async with asyncio.timeout(IDLE_SECONDS):
                    await response.write(piece)
            piece = await steps.next()
    except EndedError:
        pass
    except ConnectionError:
        raise
    except Exception as error:
        logger.warning("an archive was cut off", extra={"reason": str(error)})
        # Only a connection that breaks off tells the client that this is not all.
        raise ConnectionResetError("the archive cannot be finished") from error
    logger.info("sent an archive", extra={"format": query.format, **_counts(summary)})
    return response


async def _push(request: Request, steps: Steps[None, bytes]) -> None:
    """The body into the work; raises EndedError when that is done."""
    await steps.next()
    await invite_body(request)
    gathered: list[bytes] = []
    size = 0
    while part := await next_part(request):
        gathered.append(part)
        size += len(part)
        if size >= _GATHERED:
            await steps.send(b"".join(gathered))
            gathered.clear()
            size = 0
    if gathered:
        await steps.send(b"".join(gathered))
    while True:
        await steps.send(b"")


def _failed(error: Exception, *, path: str, tally: Tally) -> Fault:
    """What went wrong, and what had been unpacked by then: it stays."""
    if isinstance(error, OSError):
        fault = fault_of(error, path=path, operation=_UNPACK)
    elif isinstance(error, LimitError):
        fault = Fault(
            "FILE_TOO_LARGE",
            f"{error}; what was unpacked before that stays",
            context={"path": shortly(path), "maxSize": error.limit, "actualSize": error.found},
            operation=_UNPACK,
        )
    else:
        fault = invalid("body", f"{error}; what was unpacked before that stays", code="INVALID_ARCHIVE")
        fault.operation = _UNPACK
    fault.context |= {
        "operation": _UNPACK,
        "entries": tally.entries,
        "bytes": tally.bytes,
        "skipped": [{"name": each.name, "reason": each.reason} for each in _left_out(tally)],
        "skippedCount": tally.skipped_count,
    }
    return fault


def _left_out(tally: Tally) -> list[LeftOut]:
    return [LeftOut(name=shortly(name), reason=reason) for name, reason in tally.skipped]


def _counts(summary: Summary) -> dict[str, int]:
    return {
        "entries": summary.entries,
        "bytes": summary.bytes,
        "skipped": summary.skipped,
        "changed": summary.changed,
    }
