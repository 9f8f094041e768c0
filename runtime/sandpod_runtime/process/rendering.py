"""How captured output goes into a JSON reply: as text or base64, piece by piece, so that no second copy is
made.
"""

import codecs
from binascii import b2a_base64
from collections.abc import Iterator

import msgspec

from sandpod_runtime.process.output import Capture

# A multiple of 3: then base64 has padding only at the very end.
_PIECE = 3 * 65_536


def text_pieces(capture: Capture) -> Iterator[str]:
    """The output as text, with a line in the place of what was cut."""
    cut = capture.cut
    if not cut and capture.kept <= _PIECE:
        # Most outputs are small, and this is quicker.
        yield str(b"".join((capture.head, *capture.tail)), "utf-8", "replace")
        return
    head: memoryview = capture.head
    tail = capture.tail
    if cut:
        head = head[: len(head) - broken_end(head)]
        lost = broken_start(bytes(tail[0][:3]) + bytes(tail[1][:3]))
        tail = (tail[0][lost:], tail[1][max(0, lost - len(tail[0])) :])
        cut = capture.total - len(head) - len(tail[0]) - len(tail[1])
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    yield from (decoder.decode(piece) for piece in _split(head))
    if cut:
        yield decoder.decode(b"", final=True)
        yield "\n" + cut_note(cut)
    for part in tail:
        yield from (decoder.decode(piece) for piece in _split(part))
    yield decoder.decode(b"", final=True)


def base64_pieces(capture: Capture, *, note: bytes) -> Iterator[str]:
    """The kept bytes, then `note`; nothing marks the place of a cut, which would make binary output wrong."""
    rest = b""
    for part in (capture.head, *capture.tail, memoryview(note)):
        for piece in _split(part):
            data = rest + bytes(piece)
            whole = len(data) - len(data) % 3
            rest = data[whole:]
            yield b2a_base64(data[:whole], newline=False).decode("ascii")
    yield b2a_base64(rest, newline=False).decode("ascii")


def json_string(pieces: Iterator[str]) -> Iterator[bytes]:
    """A JSON string, in pieces."""
    yield b'"'
    for piece in pieces:
        yield msgspec.json.encode(piece)[1:-1]
    yield b'"'


def decoded(data: bytes) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    yield from (decoder.decode(piece) for piece in _split(memoryview(data)))
    yield decoder.decode(b"", final=True)


def as_base64(data: bytes) -> Iterator[str]:
    yield from (b2a_base64(piece, newline=False).decode("ascii") for piece in _split(memoryview(data)))


def cut_note(count: int) -> str:
    return f"[{count} bytes of output were cut here]\n"


def _split(data: memoryview) -> Iterator[memoryview]:
    return (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))


def broken_end(data: memoryview) -> int:
    """How many bytes at the end are the beginning of a character whose rest was cut off."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if length > back else 0
    return 0


def broken_start(data: bytes) -> int:
    """How many bytes at the start are the rest of a character whose beginning was cut off."""
    for count in range(min(3, len(data))):
        if data[count] & 0xC0 != 0x80:
            return count
    return min(3, len(data))
