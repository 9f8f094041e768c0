"""A program in a sandbox that records each request exactly as it got it, and reads no more into the
bytes than HTTP/1.1 says: what it does not understand is on record as well.
"""

import asyncio
from dataclasses import dataclass, field


@dataclass
class Recorder:
    """`requests` are (method and target, body)."""

    requests: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    port: int = 0

    async def listen(self) -> asyncio.Server:
        listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = listening.sockets[0].getsockname()[1]
        return listening

    async def close(self) -> None:
        for task in self.serving:
            task.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)

    def take(self) -> list[tuple[bytes, bytes]]:
        """What came since the last time."""
        taken, self.requests = self.requests, []
        return taken

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except asyncio.IncompleteReadError as error:
                    if error.partial:
                        self.requests.append((b"no request: " + error.partial, b""))
                    return
                body = await _body(head.lower(), reader)
                self.requests.append((head.partition(b" HTTP/1.1\r\n")[0], body))
                answer = b"" if head.startswith(b"HEAD ") else b"ok"
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            # Who sent it has hung up: half a body is no request.
            pass
        finally:
            writer.close()


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    if b"\r\ntransfer-encoding: chunked\r\n" not in head:
        _, found, rest = head.partition(b"\r\ncontent-length: ")
        return await reader.readexactly(int(rest.partition(b"\r\n")[0])) if found else b""
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    # Trailers
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return body
