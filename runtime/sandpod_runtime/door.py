"""What every request goes through: its ids, the gate, the routes, the translation of failures, the count."""

import logging
import time
from contextlib import nullcontext
from typing import cast

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from sandpod_runtime import trace
from sandpod_runtime.activity import Activity
from sandpod_runtime.budget import Budget
from sandpod_runtime.connection import Connection
from sandpod_runtime.errors import Fault
from sandpod_runtime.gate import OPEN, PROVE, Gate
from sandpod_runtime.metrics import Requests
from sandpod_runtime.routing import Router, route_of
from sandpod_runtime.wire import Request, empty_reply, fault_reply

# What nobody needs a credential for, or got nothing for the one that they have: they may not keep a
# connection, of which there are only so many.
_STRANGERS = frozenset(("UNAUTHENTICATED", "CONTAINER_UNAVAILABLE"))
# As others call it when the client did not wait for the answer.
_HUNG_UP = 499

logger = logging.getLogger(__name__)


class Door:
    def __init__(
        self, *, gate: Gate, router: Router, memory: Budget, activity: Activity, requests: Requests
    ) -> None:
        self._gate = gate
        self._router = router
        self._memory = memory
        self._activity = activity
        self._requests = requests

    async def handle(self, base: BaseRequest) -> StreamResponse:
        request = cast("Request", base)
        request.id = trace.enter(request.headers).request_id
        begun = time.monotonic()
        status = _HUNG_UP
        try:
            response = await self._answer(request)
            status = response.status
            return response
        finally:
            self._memory.give(request.charged)
            request.charged = 0
            self._note(request, status=status, seconds=time.monotonic() - begun)

    async def _answer(self, request: Request) -> StreamResponse:
        if request.method == "OPTIONS":
            return _last(empty_reply())
        route = route_of(request)
        try:
            self._gate.admit(request, route)
            endpoint = self._router.find(request, route)
            # Between the gate and here nothing may wait: a sleep could be decided in the meantime.
            if endpoint.looks_on:
                request.told = self._activity.touch
                self._activity.touch()
            lasting = endpoint.is_activity and not endpoint.looks_on
            working = self._activity.work() if lasting else nullcontext()
            with working, self._requests.in_flight(request.template):
                response = await endpoint.handler(request)
            # Whoever asks for a proof is about to show the credential on this connection: it is the only one
            # of which they know whose it is.
            stays = route not in OPEN and (route != PROVE or _waits_once_more(request))
            return response if stays else _last(response)
        except Fault as fault:
            reply = fault_reply(fault, request_id=request.id)
            return _last(reply) if fault.code in _STRANGERS or route in OPEN or route == PROVE else reply
        except ConnectionError:
            raise  # the client has gone: aiohttp tidies up
        except Exception:
            logger.exception("a handler failed", extra={"route": " ".join(route)})
            fault = Fault("INTERNAL_ERROR", "the runtime failed; its log says how")
            return fault_reply(fault, request_id=request.id)

    def _note(self, request: Request, *, status: int, seconds: float) -> None:
        route = request.template
        self._requests.answered(method=request.method, route=route, status=status, seconds=seconds)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "request",
                # Not the path itself: people put secrets into names of files.
                extra={
                    "method": request.method[:16],
                    "route": route,
                    "status": status,
                    "durationMs": round(seconds * 1000, 1),
                },
            )


def _waits_once_more(request: Request) -> bool:
    return cast("Connection", request.protocol).wait_once_more()


def _last(response: StreamResponse) -> StreamResponse:
    """The connection ends with this reply."""
    response.force_close()
    return response
