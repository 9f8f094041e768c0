"""`python -m tests.bench.hostile PORT KIND`: clients who mean no good, from an address of their own,
until they are ended. What others wait meanwhile is what previews.py measures.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator

SOURCE = "127.0.0.2"
PAUSE = 0.02


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A head that is never whole, a byte each second."""
    writer.write(b"GET / HTTP/1.1\r\nX: ")
    while not reader.at_eof() and not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(1)


async def _flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A head that is longer than any may be."""
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: x\r\n" * 10_000 + b"\r\n")
    await reader.read()
    await asyncio.sleep(PAUSE)


async def _guess(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One token after the other, none of them right."""
    host = f"8000-hello-{'a' * 20}.sandpod.localhost"
    while not reader.at_eof():
        writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await reader.read(65_536)


KINDS: dict[str, tuple[int, Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]]] = {
    "drip": (1000, _drip),
    "flood": (20, _flood),
    "guess": (64, _guess),
}


async def _again_and_again(port: int, kind: str) -> None:
    count, client = KINDS[kind]

    async def one() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(SOURCE, 0))
                try:
                    await client(reader, writer)
                finally:
                    writer.close()
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(one() for _ in range(count)))


@contextlib.contextmanager
def attacked(kind: str, *, port: int, core: str) -> Generator[None]:
    command = ["taskset", "-c", core, sys.executable, "-m", "tests.bench.hostile", str(port), kind]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_again_and_again(int(sys.argv[1]), sys.argv[2]))
