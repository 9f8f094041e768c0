"""Reads a watch: one JSON event per line, in whatever pieces they arrive. Pure, and bounded."""

from __future__ import annotations

import json
from typing import Any

from sandpod._failures import from_status
from sandpod._requests import Request
from sandpod.errors import SandpodError

Json = dict[str, Any]

# etcd takes no object beyond 1.5 MiB.
_MAX_EVENT_BYTES = 8 << 20


class Expired(SandpodError):
    """The watch cannot be continued from where it was: read the state anew."""


class EventLines:
    def __init__(self, *, request: Request) -> None:
        self._request = request
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[Json]:
        """The events that this piece completes. Raises what an ERROR event says."""
        *ended, rest = piece.split(b"\n")
        events: list[Json] = []
        for line in ended:
            whole = b"".join([*self._held, line])
            self._held.clear()
            self._size = 0
            if whole.strip():
                events.append(self._event(whole))
        self._held.append(rest)
        self._size += len(rest)
        if self._size > _MAX_EVENT_BYTES:
            raise SandpodError("The cluster sent an event that is too large to be one.")
        return events

    def _event(self, line: bytes) -> Json:
        try:
            event: Json = json.loads(line)
        except ValueError as error:
            raise SandpodError("The cluster sent an event that is not JSON.") from error
        if event.get("type") == "ERROR":
            status: Json = event.get("object") or {}
            code = int(status.get("code") or 500)
            if code == 410:
                raise Expired(str(status.get("message") or "expired"))
            raise from_status(status, request=self._request, status=code, retry_after=None)
        return event
