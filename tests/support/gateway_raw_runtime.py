"""A runtime that knows no HTTP beyond where a request ends: it records bytes and says what the test wants.
It proves who it is and grants leases by itself, unless told otherwise, and does not record that.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field

LEASE = b"POST /api/lifecycle/lease "
PROVE = b"GET /api/prove?nonce="


def lease_answer(status: str = "200 OK", body: bytes = b'{"phase":"running"}') -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@dataclass
class RawRuntime:
    """`answer` is sent for every request."""

    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    # Whether the connection ends after the answer
    hang_up: bool = False
    # What is said to those who ask for a lease; nothing: the connection is closed
    lease: bytes = field(default_factory=lease_answer)
    leases: int = 0
    # What it answers to a nonce; None: it gives its usual answer, as somebody who knows nothing of ours
    proof: Callable[[str], str] | None = None
    nonces: list[str] = field(default_factory=list[str])
    received: bytearray = field(default_factory=bytearray)
    connections: int = 0
    open: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])
    serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    port: int = 0

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    def say(self, data: bytes) -> None:
        """On the newest connection, asked or not."""
        self.writers[-1].write(data)

    async def close(self) -> None:
        for task in self.serving:
            task.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _content_length(head)
                if head.startswith(LEASE):
                    self.leases += 1
                    await reader.readexactly(length)
                    if not self.lease:
                        return
                    writer.write(self.lease)
                    continue
                if self.proof is not None and head.startswith(PROVE):
                    nonce = head[len(PROVE) :].partition(b" ")[0].decode()
                    self.nonces.append(nonce)
                    writer.write(lease_answer(body=json.dumps({"proof": self.proof(nonce)}).encode()))
                    continue
                self.received += head
                if length:
                    self.received += await reader.readexactly(length)
                writer.write(self.answer)
                await writer.drain()
                if self.hang_up:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.open -= 1
            async with self.changed:
                self.changed.notify_all()

    async def all_closed(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.open == 0)

    def head(self) -> list[bytes]:
        """The lines of the last request's head."""
        return bytes(self.received).split(b"\r\n\r\n")[-2].split(b"\r\n")


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
