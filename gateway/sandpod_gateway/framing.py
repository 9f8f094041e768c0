"""How a body's end is told, for both directions: by its length, by chunks, or not at all."""

from collections.abc import Callable
from enum import Enum, auto


class Framing(Enum):
    NONE = auto()
    LENGTH = auto()
    CHUNKED = auto()
    # The end of the connection is the end of the body; only for clients that know nothing better.
    CLOSE = auto()

    @property
    def frame(self) -> Callable[[bytes], bytes]:
        return _chunk if self is Framing.CHUNKED else _plain

    @property
    def end(self) -> bytes:
        return b"0\r\n\r\n" if self is Framing.CHUNKED else b""


def _chunk(data: bytes) -> bytes:
    # An empty chunk is the end of the body.
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _plain(data: bytes) -> bytes:
    return data
