"""What the sandbox's setup has written, and writes."""

from aiohttp.web_response import StreamResponse

from sandpod_runtime.lifecycle.setup import Setup
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.lifecycle import SetupLogQuery
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.wire import TEXT_HEADERS, Request

MOST_READERS = 64
_PIECE = 65_536


class SetupSurface:
    def __init__(self, *, setup: Setup) -> None:
        self._setup = setup
        self._readers = Slots("readers of the setup's log", MOST_READERS)

    def routes(self) -> Routes:
        return {
            ("GET", "/api/setup/log"): Endpoint(
                handler=self._log,
                tag="lifecycle",
                summary="What the setup has written; of much the beginning and the end.",
                query=SetupLogQuery,
                media="text/plain; charset=utf-8",
                errors=("RESOURCE_BUSY",),
            ),
        }

    async def _log(self, request: Request) -> StreamResponse:
        query: SetupLogQuery = queried(request, SetupLogQuery)
        with self._readers.one():
            log = await self._setup.log()
            response = StreamResponse(headers=TEXT_HEADERS)
            await response.prepare(request)
            offset, known = 0, log.total
            while True:
                while offset < known:
                    piece, offset = log.read(offset, most=_PIECE)
                    await response.write(piece)
                if not query.follow or (log.closed and known == log.total):
                    return response
                if known == log.total:
                    await log.more()
                known = log.total
