"""Reading a runtime's event streams as strictly as a 0.12 client does, and a little more."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

Json = dict[str, Any]

TIMESTAMP = re.compile(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$")


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Json]:
    """Each event as it arrives; comments are skipped, anything else that is not an event fails."""
    assert response.status == 200, await response.text()
    assert response.headers["Content-Type"] == "text/event-stream"
    pending = b""
    async for chunk in response.content.iter_any():
        pending += chunk
        while b"\n\n" in pending:
            block, _, pending = pending.partition(b"\n\n")
            if not block.startswith(b": "):
                yield event(block)
    assert pending == b""


def event(block: bytes) -> Json:
    assert block.startswith(b"data: "), block
    assert block.isascii()
    assert b"\n" not in block
    found: Json = json.loads(block.removeprefix(b"data: "))
    assert TIMESTAMP.match(found["timestamp"])
    return found


def text_of(found: list[Json], kind: str) -> str:
    return "".join(each["data"] for each in found if each["type"] == kind)
