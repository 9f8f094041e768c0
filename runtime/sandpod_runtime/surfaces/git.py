"""Cloning: the protocol's checkout, and the same as a stream that tells how far it is."""

import asyncio
import logging
from collections import deque

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET

from sandpod_runtime.errors import Fault
from sandpod_runtime.git.clone import Cloner, Order
from sandpod_runtime.git.program import Git
from sandpod_runtime.git.progress import Lines, parsed
from sandpod_runtime.git.requests import Surroundings
from sandpod_runtime.models.git import (
    CheckoutCompleteEvent,
    CheckoutErrorEvent,
    CheckoutProgressEvent,
    CheckoutReply,
    CheckoutRequest,
    CheckoutStartEvent,
)
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.sse import HEARTBEAT, HEARTBEAT_SECONDS, open_stream, struct_event
from sandpod_runtime.wire import Bodies, Request, reply

# Lines of progress that a slow reader has not got yet; the oldest are dropped.
_WAITING_LINES = 256
_ERRORS = (
    "INVALID_GIT_URL",
    "GIT_AUTH_FAILED",
    "GIT_REPOSITORY_NOT_FOUND",
    "GIT_BRANCH_NOT_FOUND",
    "GIT_NETWORK_ERROR",
    "GIT_CLONE_FAILED",
    "GIT_OPERATION_FAILED",
    "COMMAND_NOT_FOUND",
    "RESOURCE_BUSY",
)

logger = logging.getLogger(__name__)
_decoder = msgspec.json.Decoder(CheckoutRequest)


class GitCheckout:
    def __init__(self, *, git: Git, cloner: Cloner, surroundings: Surroundings, bodies: Bodies) -> None:
        self._git = git
        self._cloner = cloner
        self._surroundings = surroundings
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            ("POST", "/api/git/checkout"): Endpoint(
                handler=self._checkout,
                tag="git",
                summary="Clone a repository; the reply comes when it is there.",
                body=CheckoutRequest,
                reply=CheckoutReply,
                errors=_ERRORS,
            ),
            ("POST", "/api/git/checkout/stream"): Endpoint(
                handler=self._streamed,
                tag="git",
                summary="Clone a repository, and be told how far it is.",
                body=CheckoutRequest,
                events=(
                    CheckoutStartEvent,
                    CheckoutProgressEvent,
                    CheckoutCompleteEvent,
                    CheckoutErrorEvent,
                ),
                errors=("INVALID_GIT_URL", "RESOURCE_BUSY"),
            ),
        }

    async def _checkout(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _decoder)
        order = self._surroundings.order(body, request)
        with self._git.slots.one():
            branch = await self._cloner.clone(order)
        return reply(
            CheckoutReply(repo_url=body.repo_url or "", branch=branch, target_dir=order.shown_target)
        )

    async def _streamed(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _decoder)
        order = self._surroundings.order(body, request)
        with self._git.slots.one():
            response = await open_stream(request)
            await response.write(
                struct_event(
                    CheckoutStartEvent(
                        repo_url=order.job.mask(body.repo_url or ""), target_dir=order.shown_target
                    )
                )
            )
            await response.write(struct_event(await self._followed(response, order, body.repo_url or "")))
        return response

    async def _followed(
        self, response: StreamResponse, order: Order, url: str
    ) -> CheckoutCompleteEvent | CheckoutErrorEvent:
        lines = Lines()
        waiting: deque[str] = deque(maxlen=_WAITING_LINES)
        news = asyncio.Event()

        def tell(data: bytes) -> None:
            waiting.extend(lines.feed(data))
            news.set()

        cloning = asyncio.create_task(self._cloner.clone(order, tell=tell))
        cloning.add_done_callback(lambda _: news.set())
        try:
            while not cloning.done() or waiting:
                news.clear()
                while waiting:
                    await response.write(struct_event(_progress(order.job.mask(waiting.popleft()))))
                if cloning.done() or news.is_set():
                    continue
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    await response.write(HEARTBEAT)
        finally:
            # A client that hung up does not wait for a clone.
            cloning.cancel()
            await asyncio.wait([cloning])
        try:
            branch = cloning.result()
        except Fault as fault:
            return _error(fault)
        except Exception:
            logger.exception("a clone failed")
            return _error(Fault("INTERNAL_ERROR", "the runtime failed; its log says how"))
        return CheckoutCompleteEvent(repo_url=url, branch=branch, target_dir=order.shown_target)


def _progress(line: str) -> CheckoutProgressEvent:
    found = parsed(line)
    return CheckoutProgressEvent(
        text=found.text,
        phase=UNSET if found.phase is None else found.phase,
        percent=UNSET if found.percent is None else found.percent,
        current=UNSET if found.current is None else found.current,
        total=UNSET if found.total is None else found.total,
    )


def _error(fault: Fault) -> CheckoutErrorEvent:
    return CheckoutErrorEvent(
        error=fault.message,
        code=fault.code,
        message=fault.message,
        context=fault.context,
        http_status=fault.status,
        suggestion=fault.suggestion or UNSET,
    )
