"""What is around a request at every door: its trace, its place in the count of requests under way, the shape
of a refusal, one line of audit, the metrics. What is behind the door is the door's own.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final

from aiohttp import web

from .audit import CLIENT_GONE, Audit, Exchange, accept_traceparent
from .errors import BadRequest, Failed, Refusal, Unauthenticated, status_object
from .metrics import Metrics
from .relay import CLIENT_LEFT

log = logging.getLogger(__name__)

Serve = Callable[[web.BaseRequest, Exchange], Awaitable[web.StreamResponse]]

# Whoever may not enter is always on record, wherever they wanted to go.
_ALWAYS_AUDITED: Final = (401, 403)


class Door:
    def __init__(self, *, name: str, serve: Serve, audit: Audit, metrics: Metrics) -> None:
        self._name = name
        self._serve = serve
        self._audit = audit
        self._metrics = metrics
        self.under_way = 0
        self.idle = asyncio.Event()
        self.idle.set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        exchange = Exchange(
            door=self._name,
            method=request.method,
            path=_printable(request.raw_path.partition("?")[0]),
            source=request.remote or "",
            traceparent=accept_traceparent(request.headers.get("traceparent")),
        )
        self.under_way += 1
        self.idle.clear()
        try:
            response = await self._answer(request, exchange)
            exchange.status = response.status
            # Of whoever sent what cannot be read, the next bytes may be read in two ways as well.
            malformed = isinstance(response, web.Response) and response.status == BadRequest.code
            if malformed or not exchange.keep_alive:
                response.force_close()
            return response
        except asyncio.CancelledError:
            exchange.status = exchange.status or CLIENT_GONE
            exchange.reason = exchange.reason or CLIENT_LEFT
            raise
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.idle.set()
            self._record(exchange)

    async def _answer(self, request: web.BaseRequest, exchange: Exchange) -> web.StreamResponse:
        try:
            return await self._serve(request, exchange)
        except Refusal as refusal:
            exchange.refused(refusal)
            return refuse(refusal)
        except Exception:
            log.exception("request %s failed", exchange.traceparent)
            failed = Failed()
            exchange.refused(failed, reason=failed.reason)
            return refuse(failed)

    def _record(self, exchange: Exchange) -> None:
        seconds = (exchange.answered or perf_counter()) - exchange.started
        self._metrics.request(door=self._name, code=exchange.status, seconds=seconds)
        if exchange.refusal:
            self._metrics.refusal(door=self._name, code=exchange.status, reason=exchange.refusal)
        # A verb is there as soon as it is known what somebody wants with sandboxes.
        if exchange.sandbox or exchange.verb or exchange.status in _ALWAYS_AUDITED:
            self._audit.record(exchange)


def refuse(refusal: Refusal) -> web.Response:
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    if isinstance(refusal, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return document(status_object(refusal), status=refusal.code, headers=headers)


def document(
    value: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    body = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    return web.Response(
        status=status, body=body, headers={"Content-Type": "application/json", **(headers or {})}
    )


def success(message: str, *, code: int = 200) -> dict[str, Any]:
    """What Kubernetes says when something was done that has nothing to show."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "message": message,
        "code": code,
    }


def _printable(path: str) -> str:
    # The log's readers show what they get: no control characters, no bytes that are no text.
    return path.encode("ascii", "backslashreplace").decode() if not path.isascii() else path
