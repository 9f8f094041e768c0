"""Whether something answers on a port of this machine: a connection, or a GET with its status.

A client of our own, because it must never leave loopback, whatever a server's redirect says, and read no more
than the head of an answer.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import quote, urljoin, urlsplit

SECONDS = 5.0
LOOPBACK = ("127.0.0.1", "::1")
_MOST_REDIRECTS = 10
_LARGEST_HEAD = 65_536
# As answers before the answer, which are not it.
_MOST_INTERIM = 10
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: |\r?\n|$)")
_LOCATION = re.compile(rb"(?im)^location:[ \t]*([^\r\n]*?)[ \t]*\r?$")
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


async def connects(port: int) -> bool:
    for host in LOOPBACK:
        try:
            async with asyncio.timeout(SECONDS), _connected(host, port):
                return True
        except (OSError, TimeoutError):
            continue
    return False


async def status(port: int, path: str) -> int | None:
    """What a GET is answered with, after redirects within this machine; None when there is no answer."""
    for host in LOOPBACK:
        try:
            async with asyncio.timeout(SECONDS):
                if (found := await _followed(host, port, path)) is not None:
                    return found
        except (OSError, TimeoutError, ValueError, EOFError):
            continue
    return None


def local_target(location: str, *, host: str, port: int, path: str) -> tuple[str | None, int, str] | None:
    """Where a redirect leads: address (None for localhost), port and path; None when it would leave loopback,
    or HTTP.
    """
    try:
        found = urlsplit(urljoin(f"http://{f'[{host}]' if ':' in host else host}:{port}{path}", location))
        wanted, target = found.hostname or "", found.port or 80
    except ValueError:
        return None
    if found.scheme != "http":
        return None
    if wanted == "localhost":
        address = None
    else:
        try:
            if not ip_address(wanted).is_loopback:
                return None
        except ValueError:
            return None  # a name, of which a server far away may say that it is loopback
        address = wanted
    return address, target, encoded(found.path + (f"?{found.query}" if found.query else ""))


def encoded(path: str) -> str:
    """As it stands in a request: nothing that ends a line, no fragment."""
    path = path.partition("#")[0]
    return quote(path if path.startswith("/") else f"/{path}", safe="!$%&'()*+,/:;=?@[]~")


async def _followed(host: str, port: int, path: str) -> int | None:
    path = encoded(path)
    for _ in range(_MOST_REDIRECTS + 1):
        code, location = await _asked(host, port, path)
        if code not in _REDIRECTS or location is None:
            return code
        target = local_target(location, host=host, port=port, path=path)
        if target is None:
            return code  # somewhere else: this answer is the one that counts
        host, port, path = target[0] or host, target[1], target[2]
    return None


async def _asked(host: str, port: int, path: str) -> tuple[int, str | None]:
    async with _connected(host, port) as (reader, writer):
        request = f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nUser-Agent: sandpod\r\n"
        writer.write(f"{request}Accept: */*\r\nConnection: close\r\n\r\n".encode("ascii"))
        for _ in range(_MOST_INTERIM):
            head = await _head(reader)
            if not (found := _STATUS.match(head)):
                raise ValueError("this is not HTTP")
            if (code := int(found[1])) >= 200:
                location = _LOCATION.search(head)
                return code, location[1].decode("latin-1") if location else None
    raise ValueError("the answer never came")


async def _head(reader: asyncio.StreamReader) -> bytes:
    head = b""
    while len(head) <= _LARGEST_HEAD:
        line = await reader.readline()
        head += line
        if line in (b"\r\n", b"\n", b""):
            return head
    raise ValueError("the head is too large")


@asynccontextmanager
async def _connected(
    host: str, port: int
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(host, port, limit=_LARGEST_HEAD)
    try:
        yield reader, writer
    finally:
        # Whatever it still wants to say.
        writer.transport.abort()
