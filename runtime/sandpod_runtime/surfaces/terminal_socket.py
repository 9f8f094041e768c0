"""What the WebSockets of terminals have in common: the upgrade, its refusals, and answers once it is one."""

import logging
from collections.abc import Awaitable, Callable

from aiohttp.web_response import Response, StreamResponse

from sandpod_runtime.errors import Fault
from sandpod_runtime.models.terminals import LARGEST_SIDE
from sandpod_runtime.terminal.terminal import Terminal
from sandpod_runtime.wire import HEADERS, Request

FRAMES = (
    "binary frames are what is typed and what the terminal writes, beginning with what it wrote before; text "
    "frames are JSON: `resize` (`cols`, `rows`) from the client, `ready`, `exit` (`code`, `signal`) and "
    "`error` (`message`) to it."
)

logger = logging.getLogger(__name__)


async def served(request: Request, terminal: Callable[[], Awaitable[Terminal]]) -> StreamResponse:
    # With the first terminal: most sandboxes have none, and every one of them has to start quickly.
    from sandpod_runtime.terminal import attachment

    socket = await attachment.upgraded(request)
    try:
        await socket.serve(await terminal())
    except Fault as fault:
        await socket.leave(attachment.refusal(fault))
    except ConnectionError:
        raise
    except Exception:
        # The door would answer in HTTP, into the middle of a WebSocket.
        logger.exception("a terminal's socket failed")
        await socket.leave(attachment.BROKEN)
    return socket.response


def refuse_without_upgrade(request: Request) -> None:
    if request.headers.get("Upgrade", "").strip().lower() != "websocket":
        raise Fault("UNKNOWN_ERROR", "this is for WebSockets: ask for an upgrade", status=404)


def refused(text: str) -> StreamResponse:
    return Response(text=text, status=400, headers=HEADERS)


def side(text: str | None) -> int:
    """0 for what makes no sense as a number of columns or rows."""
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 6:
        return 0
    return int(text) if int(text) <= LARGEST_SIDE else 0
