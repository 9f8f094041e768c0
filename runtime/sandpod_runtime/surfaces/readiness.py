"""Whether the sandbox can be used, for the kubelet's probe: not while it ends, and not on a full disk."""

from aiohttp.web_response import StreamResponse

from sandpod_runtime.errors import Fault
from sandpod_runtime.gate import READINESS
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.lifecycle.room import Room
from sandpod_runtime.models.basics import ReadyReply
from sandpod_runtime.paths import shown
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import Request, reply


class Readiness:
    def __init__(self, *, life: Life, room: Room) -> None:
        self._life = life
        self._room = room

    def routes(self) -> Routes:
        return {
            READINESS: Endpoint(
                handler=self._ready,
                tag="runtime",
                summary="Whether it can be used. Needs no credential; for probes.",
                reply=ReadyReply,
                errors=("NO_SPACE", "CONTAINER_UNAVAILABLE"),
                is_activity=False,
            ),
        }

    async def _ready(self, _: Request) -> StreamResponse:
        self._life.refuse_when_over()
        space = await self._room.look()
        if space is not None and space.full:
            raise Fault(
                "NO_SPACE",
                f"the disk of {shown(space.path)} is full: {space.free >> 20} of {space.total >> 20} MiB are "
                "free, or no more files fit; delete files or enlarge spec.workspace.size",
                status=507,
            )
        return reply(ReadyReply())
