"""Server-sent events: one `data:` line of ASCII JSON and an empty line for each, with comments while
nothing happens.

ASCII because a 0.12 client decodes every network chunk by itself: a character split between two would be
lost.
"""

import json
from collections.abc import Callable

import msgspec
from aiohttp.http import HttpVersion11
from aiohttp.web_response import StreamResponse

from sandpod_runtime.clock import timestamp
from sandpod_runtime.wire import HEADERS, Request

HEARTBEAT_SECONDS = 15.0
HEARTBEAT = b": hb\n\n"
_HEADERS = HEADERS | {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


def ascii_json(text: str) -> bytes:
    """A JSON string. Most output is ASCII, and for that msgspec is several times quicker."""
    return msgspec.json.encode(text) if text.isascii() else json.dumps(text).encode("ascii")


def event(kind: str, **fields: object) -> bytes:
    """A small event; the time is added."""
    content = {"type": kind, **fields, "timestamp": timestamp()}
    return b"data: %b\n\n" % json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")


def struct_event(content: msgspec.Struct) -> bytes:
    """A small event that is made of a model."""
    text = json.dumps(msgspec.to_builtins(content), separators=(",", ":"), allow_nan=False)
    return b"data: %b\n\n" % text.encode("ascii")


def data_event(kind: str, data: bytes) -> bytes:
    """An event whose `data` is given as JSON already, because it may be large."""
    return b'data: {"type":"%b","data":%b,"timestamp":"%b"}\n\n' % (
        kind.encode("ascii"),
        data,
        timestamp().encode("ascii"),
    )


class EventStream(StreamResponse):
    """A stream that says when it has told something: a heartbeat is nothing."""

    def __init__(self, told: Callable[[], None]) -> None:
        super().__init__(headers=_HEADERS)
        self._told = told

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        if data != HEARTBEAT:
            self._told()
        await super().write(data)


async def open_stream(request: Request) -> StreamResponse:
    response = EventStream(request.told)
    if request.version >= HttpVersion11:
        # To a 1.0 client it would be a lie: without chunks only the end of the connection ends the stream.
        response.headers["Connection"] = "keep-alive"
    await response.prepare(request)
    return response
