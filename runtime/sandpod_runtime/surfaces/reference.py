"""/openapi.json: what this runtime answers, described by the models with which it does."""

from collections.abc import Callable

from aiohttp.web_response import Response, StreamResponse

from sandpod_runtime.disk import Disk
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import JSON_HEADERS, Request, encode


class Reference:
    def __init__(self, *, disk: Disk, everything: Callable[[], Routes]) -> None:
        self._disk = disk
        self._everything = everything
        self._made: bytes | None = None

    def routes(self) -> Routes:
        return {
            ("GET", "/openapi.json"): Endpoint(
                handler=self._describe,
                tag="runtime",
                summary="This description, for programs: OpenAPI 3.1.",
                media="application/json",
                is_activity=False,
            )
        }

    async def _describe(self, _: Request) -> StreamResponse:
        if self._made is None:
            everything = self._everything()  # not in a thread: this may make surfaces
            # It takes as long as some hundred requests, which should not wait for it.
            self._made = await self._disk.run(_encoded, everything)
        return Response(body=self._made, headers=JSON_HEADERS)


def _encoded(routes: Routes) -> bytes:
    from sandpod_runtime.openapi.document import document  # few runtimes are ever asked

    return encode(document(routes))
