"""What the gateway reaches of the operator: a port that is open to it, and one that a NetworkPolicy closes.
The operator asks, and so learns whether the cluster enforces NetworkPolicies (its module `enforcement`).
"""

import asyncio
import contextlib
import time
from typing import Final

from aiohttp import web

from .settings import Settings

PATH: Final = "/reach"
# Of a network that drops what it does not let through, silence is all there is to hear.
PATIENCE: Final = 3.0
# Whoever asks more often hears the same again: nobody makes us knock at the operator's all day.
REMEMBERED: Final = 2.0


class Reach:
    def __init__(self, settings: Settings) -> None:
        self._host = settings.operator_host
        self._open_port = settings.operator_metrics_port
        self._closed_port = settings.operator_canary_port
        self._knocking: asyncio.Task[dict[str, bool]] | None = None
        self._since = 0.0

    async def answer(self) -> web.Response:
        if self._knocking is None or (self._knocking.done() and time.monotonic() - self._since > REMEMBERED):
            self._since = time.monotonic()
            self._knocking = asyncio.create_task(self._knock())
        # Shielded: of two who wait for the same knock, one may go.
        return web.json_response(await asyncio.shield(self._knocking))

    async def _knock(self) -> dict[str, bool]:
        is_open, is_closed = await asyncio.gather(
            greets(self._host, self._open_port, say=b"GET /readyz HTTP/1.0\r\n\r\n", hear=b"HTTP/1."),
            greets(self._host, self._closed_port, say=b"", hear=b"sandpod\n"),
        )
        return {"open": is_open, "closed": is_closed}


async def greets(host: str, port: int, *, say: bytes, hear: bytes) -> bool:
    """Whether somebody there answers with these first bytes. A connection alone says nothing: the proxies of
    a service mesh accept every one.
    """
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(say)
            return await reader.readexactly(len(hear)) == hear
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
    finally:
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
