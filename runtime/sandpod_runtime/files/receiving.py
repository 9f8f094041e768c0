"""A request's body into a draft, as quickly as the network brings it and the disk takes it."""

import asyncio
import contextlib

from aiohttp.web_protocol import RequestPayloadError

from sandpod_runtime.disk import Disk
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.files.draft import Draft
from sandpod_runtime.wire import Request, invite_body

IDLE_SECONDS = 300.0
# So much is written at a time, while as much is received.
_STEP = 1 << 20
_MOST_PARTS = 512


async def receive(
    request: Request, draft: Draft, *, disk: Disk, most: int | None = None, keep: bool = False
) -> None:
    """`keep`: what has come is written also when the client leaves. `most` is how large the draft may get."""
    await invite_body(request)
    writer = _Writer(draft, disk=disk)
    total = draft.size
    try:
        while part := await next_part(request):
            total += len(part)
            if most is not None and total > most:
                raise invalid("size", f"this is more than the {most} bytes that were announced")
            await writer.add(part)
    except BaseException:
        with contextlib.suppress(OSError):
            await writer.finish(keep=keep)
        raise
    await writer.finish(keep=True)


async def next_part(request: Request) -> bytes:
    """What has come of the body; nothing at its end."""
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            return await request.content.readany()
    except TimeoutError as error:
        raise Fault("OPERATION_INTERRUPTED", f"nothing came for {IDLE_SECONDS:.0f} seconds") from error
    except (RequestPayloadError, ValueError) as error:
        raise invalid("body", f"the request's body cannot be read: {error}") from error


class _Writer:
    """Writes what it has gathered while more comes."""

    def __init__(self, draft: Draft, *, disk: Disk) -> None:
        self._draft = draft
        self._disk = disk
        self._parts: list[bytes] = []
        self._size = 0
        self._writing: asyncio.Task[None] | None = None

    async def add(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size >= _STEP or len(self._parts) >= _MOST_PARTS:
            await self._settle()
            self._writing = asyncio.create_task(self._disk.run(self._draft.write, self._parts))
            self._parts, self._size = [], 0

    async def finish(self, *, keep: bool) -> None:
        await self._settle()
        if keep and self._parts:
            await self._disk.run(self._draft.write, self._parts)

    async def _settle(self) -> None:
        """The write that is under way ends, even if nobody wants it any more: it is in a thread."""
        if self._writing is not None:
            await asyncio.shield(self._writing)
            self._writing = None
