"""Content between a request and a file: texts in their encodings, and base64."""

import codecs
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import AsyncIterator

from sandpod_runtime.errors import Fault, invalid

# In pieces, because each conversion keeps Python's lock. A multiple of 4: base64 can be cut there.
_PIECE = 4 * 65_536


def from_base64(text: str, *, field: str = "content") -> list[bytes]:
    """Strictly: the alphabet, complete, padded, and nothing after that."""
    parts: list[bytes] = []
    try:
        for start in range(0, len(text), _PIECE):
            part = a2b_base64(text[start : start + _PIECE].encode("ascii"), strict_mode=True)
            if len(text) > start + _PIECE and len(part) != _PIECE // 4 * 3:
                raise _not_base64(field, "there is padding in the middle")
            parts.append(part)
    except (Base64Error, UnicodeEncodeError) as error:
        reason = "there are other characters" if isinstance(error, UnicodeEncodeError) else str(error)
        raise _not_base64(field, reason) from error
    return parts


def from_text(text: str, *, charset: str = "utf-8", field: str = "content") -> list[bytes]:
    encoder = codecs.getincrementalencoder(charset)()
    try:
        return [encoder.encode(text[start : start + _PIECE]) for start in range(0, len(text), _PIECE)]
    except UnicodeEncodeError as error:
        raise invalid(field, f"{text[error.start]!r} cannot be written as {charset}") from error


def decoded(content: str, *, encoding: str | None, charset: str = "utf-8") -> list[bytes]:
    return from_base64(content) if encoding == "base64" else from_text(content, charset=charset)


async def in_base64(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Each piece but the last has to be a multiple of 3 bytes long."""
    async for piece in pieces:
        yield b2a_base64(piece, newline=False).decode("ascii")


async def in_text(pieces: AsyncIterator[bytes], *, charset: str = "utf-8") -> AsyncIterator[str]:
    """Across pieces, so that a character that lies in two of them survives."""
    decoder = codecs.getincrementaldecoder(charset)("replace")
    async for piece in pieces:
        if text := _text(decoder, piece, charset=charset):
            yield text
    if rest := _text(decoder, b"", charset=charset, final=True):
        yield rest


def _text(decoder: codecs.IncrementalDecoder, piece: bytes, *, charset: str, final: bool = False) -> str:
    try:
        return decoder.decode(piece, final=final)
    except UnicodeError as error:
        # Also when it replaces what is wrong, it wants to know the order of the bytes.
        raise invalid("charset", f"the file cannot be read as {charset}: {error}") from error


def _not_base64(field: str, reason: str) -> Fault:
    return invalid(field, f"this is not base64: {reason}", code="INVALID_BASE64")
