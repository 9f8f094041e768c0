"""A program to look at through a preview: it says what reached it, byte for byte, and streams when it is told
to. Standard library alone, as it runs in a sandbox: `python3 preview_program.py PORT`.
"""

import asyncio
import base64
import hashlib
import json
import re
import struct
import sys
from collections.abc import AsyncIterator

CONTENT = bytes(range(256)) * 4
PIECE = bytes(1 << 16)
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CLOSE, PING, PONG = 8, 9, 10
WITH_TRAILERS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5d41\r\n\r\n"

# Until somebody asks for them: the heads of all requests, as they came,
heads: list[str] = []
# and the pongs and closes of WebSockets.
heard: list[str] = []
# What a test says here, streams and polls of others pass on.
said: "asyncio.Queue[bytes]" = asyncio.Queue()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await answer(reader, writer):
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    target = head.split(b"\r\n")[0].split(b" ")[1]
    path, _, query = target.decode("latin-1").partition("?")
    if (kept := {"/heads": heads, "/heard": heard}.get(path)) is not None:
        reply(writer, json.dumps(kept).encode())
        kept.clear()
        return True
    heads.append(head.decode("latin-1"))
    if header(head, "upgrade").lower() == "websocket":
        await websocket(head, reader, writer)
        return False
    if path == "/say":
        said.put_nowait(await body_of(head, reader))
        reply(writer, b"said")
    elif path == "/poll":
        reply(writer, await said.get())
    elif path == "/events":
        await events(writer)
    elif path == "/large":
        await large(int(query), writer)
    elif path == "/content":
        content(head, writer)
    elif path == "/trailers":
        writer.write(WITH_TRAILERS)
    else:
        await describe(head, reader, writer)
    return header(head, "connection").lower() != "close"


async def events(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    while (word := await said.get()) != b"end":
        piece = b"data: " + word + b"\n\n"
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def large(left: int, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
    while left:
        writer.write(PIECE[:left])
        left -= min(left, len(PIECE))
        await writer.drain()


def content(head: bytes, writer: asyncio.StreamWriter) -> None:
    ranged = re.fullmatch(r"bytes=(\d+)-(\d+)", header(head, "range"))
    first, last = (int(ranged[1]), int(ranged[2])) if ranged else (0, len(CONTENT) - 1)
    where = f"Content-Range: bytes {first}-{last}/{len(CONTENT)}"
    status, more = ("206 Partial Content", (where,)) if ranged else ("200 OK", ())
    reply(writer, CONTENT[first : last + 1], status, *more, without_body=head.startswith(b"HEAD "))


async def describe(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    digest, size = hashlib.sha256(), 0
    async for piece in body(head, reader, writer):
        digest.update(piece)
        size += len(piece)
    document = {"head": head.decode("latin-1"), "size": size, "sha256": digest.hexdigest()}
    reply(writer, json.dumps(document).encode())


def reply(
    writer: asyncio.StreamWriter,
    content: bytes,
    status: str = "200 OK",
    *more: str,
    without_body: bool = False,
) -> None:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", "Allow: GET, POST, OPTIONS", *more]
    writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if without_body else content))


def header(head: bytes, name: str) -> str:
    found = re.search(rf"(?im)^{name}:[ \t]*(.*?)[ \t]*\r$", head.decode("latin-1"))
    return found[1] if found else ""


async def body_of(head: bytes, reader: asyncio.StreamReader) -> bytes:
    return b"".join([piece async for piece in body(head, reader, None)])


async def body(
    head: bytes, reader: asyncio.StreamReader, writer: "asyncio.StreamWriter | None"
) -> AsyncIterator[bytes]:
    if writer is not None and header(head, "expect"):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if header(head, "transfer-encoding").lower() == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return
    left = int(header(head, "content-length") or 0)
    while left:
        piece = await reader.read(min(left, 1 << 16))
        if not piece:
            raise ConnectionError("the body ended early")
        left -= len(piece)
        yield piece


async def websocket(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Echoes messages of any length, compressed ones as they are, until one side closes. On a text message
    `close` that is this one, with a code of its own.
    """
    key = header(head, "sec-websocket-key").encode()
    accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET).digest()).decode()
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    lines.append(f"Sec-WebSocket-Accept: {accept}")
    if protocols := header(head, "sec-websocket-protocol"):
        lines.append(f"Sec-WebSocket-Protocol: {protocols.split(',')[-1].strip()}")
    if "permessage-deflate" in header(head, "sec-websocket-extensions"):
        lines.append("Sec-WebSocket-Extensions: permessage-deflate")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    while True:
        first, data = await frame(reader)
        kind = first & 15
        if kind == PING:
            writer.write(framed(0x80 | PONG, data) + framed(0x80 | PING, b"and you?"))
        elif kind == PONG:
            heard.append(f"pong: {data.decode()}")
        elif kind == CLOSE:
            heard.append(f"closed: {int.from_bytes(data[:2], 'big')} {data[2:].decode()}")
            writer.write(framed(first, data))
            return
        elif data == b"close":
            writer.write(framed(0x80 | CLOSE, (4000).to_bytes(2, "big") + b"as you say"))
        else:
            writer.write(framed(first, data))
        await writer.drain()


async def frame(reader: asyncio.StreamReader) -> "tuple[int, bytes]":
    """Its first byte, and what it carries."""
    first, second = await reader.readexactly(2)
    size = second & 127
    if extended := {126: 2, 127: 8}.get(size, 0):
        size = int.from_bytes(await reader.readexactly(extended), "big")
    mask, masked = await reader.readexactly(4), await reader.readexactly(size)
    whole = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return first, (int.from_bytes(masked, "big") ^ whole).to_bytes(size, "big")


def framed(first: int, data: bytes) -> bytes:
    size = len(data)
    if size < 126:
        return bytes([first, size]) + data
    length = b"\x7e" + struct.pack(">H", size) if size < 1 << 16 else b"\x7f" + struct.pack(">Q", size)
    return bytes([first]) + length + data


async def main() -> None:
    server = await asyncio.start_server(serve, "0.0.0.0", int(sys.argv[1]), limit=1 << 17)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
