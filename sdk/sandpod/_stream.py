"""A command that is running: its output as it comes, then its exit code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import httpx

from sandpod import _following, _requests
from sandpod._client import Client
from sandpod._command import ExecEvents, Exited
from sandpod._observation import observe
from sandpod._requests import Request
from sandpod._results import Output
from sandpod.errors import ConnectionLost, Forbidden, NotReady

Json = dict[str, Any]

_FIRST_PAUSE_SECONDS = 0.02
_LONG_PAUSE_SECONDS = 0.2


class ExecStream:
    """Iterate for the output; `exit_code` is known when that has ended. Leaving early ends the command.

    Use it in a `with` statement: `close` hangs up, and the runtime then ends the command and all that
    it started.
    """

    def __init__(self, client: Client, *, response: httpx.Response, request: Request) -> None:
        self.exit_code: int | None = None
        self._response = response
        self._events = self._read(client, request)

    def __iter__(self) -> Iterator[Output]:
        return self._events

    def close(self) -> None:
        self._response.close()

    def __enter__(self) -> ExecStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, client: Client, request: Request) -> Iterator[Output]:
        events = ExecEvents()
        lost = "The connection to the sandbox ended before the command did."
        try:
            for piece in client.pieces(self._response, request=request):
                for event in events.feed(piece):
                    if isinstance(event, Exited):
                        self.exit_code = event.code
                    else:
                        yield event
        except ConnectionLost as error:
            lost = error.message
        # Whatever happened to the connection after the last word does not matter any more.
        if self.exit_code is None:
            raise ConnectionLost(
                lost, hint="What the command had done by then is done; the rest is not known."
            )


def start(
    client: Client,
    *,
    namespace: str,
    name: str,
    body: Json,
    start_timeout: float,
    on_wait: Callable[[str], object] | None,
) -> ExecStream:
    """Sends the command as soon as the sandbox takes it.

    Raises NotReady or TimedOut if that is not in time.
    """
    request = _requests.execute_stream(namespace=namespace, name=name, body=body)
    tell: Callable[[str], object] = on_wait or _ignore
    begun = time.monotonic()
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return ExecStream(client, response=client.open(request), request=request)
        except NotReady as refusal:
            # Runtime and gateway refuse like this only before they did anything: to ask again is safe.
            waited = time.monotonic() - begun
            if waited >= start_timeout:
                raise
            if pause > _LONG_PAUSE_SECONDS:
                # It should be ready by now, and the gateway still says no: that is worth telling.
                tell(refusal.message)
            try:
                left = start_timeout - waited
                _wait_ready(client, namespace=namespace, name=name, waited=waited, timeout=left, tell=tell)
            except Forbidden:
                # Who may run commands need not be allowed to look: then the gateway's own advice has to do.
                tell(refusal.message)
                pause = refusal.retry_after
            time.sleep(max(0.0, min(pause, refusal.retry_after, begun + start_timeout - time.monotonic())))
            pause *= 2


def _wait_ready(
    client: Client, *, namespace: str, name: str, waited: float, timeout: float, tell: Callable[[str], object]
) -> None:
    def progress(state: Json) -> None:
        now = observe(state)
        if not now.ready:
            tell(str(now))

    sandbox = client.send(_requests.get(namespace=namespace, name=name))
    _following.wait_ready(client, sandbox=sandbox, timeout=timeout, waited=waited, on_change=progress)


def _ignore(message: str) -> None:
    pass
