"""`python -m tests.bench.hostile PORT KIND HOST`: clients who mean no good, from an address of their own,
until they are ended. What others wait meanwhile is what previews.py measures.
"""

import asyncio
import contextlib
import itertools
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator

SOURCE = "127.0.0.2"
PAUSE = 0.02
NOWHERE = f"8000-hello-{'a' * 20}.sandpod.localhost"


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    """A head that is never whole, a byte each second."""
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nX: ".encode())
    while not reader.at_eof() and not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(1)


async def _flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    """A head that is longer than any may be."""
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n".encode() + b"X: x\r\n" * 10_000 + b"\r\n")
    await reader.read()
    await asyncio.sleep(PAUSE)


async def _guess(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    """One token after the other, none of them right."""
    label, _, domain = host.partition(".")
    await _ask_on(reader, writer, f"GET / HTTP/1.1\r\nHost: {label[:-20]}{'a' * 20}.{domain}\r\n\r\n")


async def _unusual(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    """The right token, and requests that HAProxy leaves to the Python process."""
    named = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: x\r\n\r\n"
    chunks = f"POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    await _ask_on(reader, writer, named, chunks)


async def _ask_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *requests: str) -> None:
    for request in itertools.cycle(requests):
        writer.write(request.encode())
        # Raises at the end of the connection.
        await reader.readuntil(b"\r\n\r\n")
        await reader.read(65_536)


Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]
KINDS: dict[str, tuple[int, Client]] = {
    "drip": (1000, _drip),
    "flood": (20, _flood),
    "guess": (64, _guess),
    "unusual": (64, _unusual),
}


async def _again_and_again(port: int, kind: str, host: str) -> None:
    count, client = KINDS[kind]

    async def one() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(SOURCE, 0))
                try:
                    await client(reader, writer, host)
                finally:
                    writer.close()
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(one() for _ in range(count)))


@contextlib.contextmanager
def attacked(kind: str, *, port: int, core: str, host: str = NOWHERE) -> Generator[None]:
    """`host` is a preview's, another one than what is measured."""
    command = ["taskset", "-c", core, sys.executable, "-m", "tests.bench.hostile", str(port), kind, host]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_again_and_again(int(sys.argv[1]), *sys.argv[2:]))
