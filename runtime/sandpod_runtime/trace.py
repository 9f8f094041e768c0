"""Which request this is: ids that join what clients see, what is logged here, and what callers have logged.

A caller's W3C trace context is continued when it is well-formed, and otherwise a new trace begins.
"""

import os
import re
from collections.abc import Mapping
from contextvars import ContextVar

import msgspec

# A later version may have more fields after a hyphen; what is not exactly this is as if it were not there.
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[!-~]*)?")
_LONGEST = 256
_CLIENTS_OWN = "X-Trace-Id"


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    trace_id: str
    span_id: str
    request_id: str
    # What the published client sends. It is logged and means nothing else.
    client_trace_id: str = ""

    def fields(self) -> dict[str, object]:
        found: dict[str, object] = {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "request_id": self.request_id,
        }
        if self.client_trace_id:
            found["client_trace_id"] = self.client_trace_id
        return found


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)
current = _current.get


def enter(headers: Mapping[str, str]) -> Trace:
    """What this task logs from now on is about the request with these headers."""
    fresh = os.urandom(32).hex()
    trace = Trace(
        trace_id=continued(headers.get("traceparent")) or fresh[:32],
        span_id=fresh[32:48],
        request_id=fresh[48:],
        client_trace_id=_harmless(headers.get(_CLIENTS_OWN, "")),
    )
    _current.set(trace)
    return trace


def continued(traceparent: str | None) -> str | None:
    """The trace id of a `traceparent`, None when that is absent or anything but well-formed."""
    if traceparent is None or len(traceparent) > _LONGEST:
        return None
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    version, trace_id, parent_id, more = found.groups()
    if version == "ff" or (version == "00" and more) or set(trace_id) == {"0"} or set(parent_id) == {"0"}:
        return None
    return trace_id


def _harmless(given: str) -> str:
    return given if len(given) <= 128 and given.isascii() and given.isprintable() else ""
