"""Who did what in which sandbox: one line of JSON for each request to one and for each refusal. Never a
query, a body, a header or anything else that could hold a secret.
"""

import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from .errors import Refusal

_TRACEPARENT: Final = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
# Written when the client was gone before it could be told anything; nginx's word for it.
CLIENT_GONE: Final = 499


@dataclass(slots=True)
class Exchange:
    """One request and what became of it, filled in on its way."""

    door: str
    method: str
    path: str
    source: str
    traceparent: str
    started: float = field(default_factory=time.perf_counter)
    user: str = ""
    # By which the API server's own audit log knows this request
    audit_id: str = ""
    namespace: str = ""
    sandbox: str = ""
    verb: str = ""
    subresource: str = ""
    status: int = 0
    # Why the gateway refused it; empty when the answer is the runtime's.
    reason: str = ""
    # The kind of that refusal
    refusal: str = ""
    # Seconds that it stood still until its sandbox could take it
    waited: float = 0.0
    # Sent once more, to the next pod, because the one before was going to sleep
    resent: int = 0
    # When the answer's head was there: what follows is the command's own time.
    answered: float | None = None
    # Bytes of bodies and sockets, both ways: whether something moves
    moved: int = 0
    # Whether the client's connection may serve another request after this one
    keep_alive: bool = True

    def refused(self, refusal: Refusal, *, reason: str = "") -> None:
        """The gateway itself answers. `reason` is for the log, where the refusal's own words are not."""
        self.reason, self.refusal = reason or refusal.message, type(refusal).__name__


class Audit:
    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def record(self, exchange: Exchange) -> None:
        line = json.dumps(entry(exchange, now=datetime.now(UTC)), separators=(",", ":"))
        self._stream.write(line + "\n")
        # At once: what is still in a buffer when the process dies was never audited.
        self._stream.flush()


def entry(exchange: Exchange, *, now: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {
        "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "audit": exchange.door,
        "user": exchange.user,
        "verb": exchange.verb,
        "subresource": exchange.subresource,
        "namespace": exchange.namespace,
        "sandbox": exchange.sandbox,
        "method": exchange.method,
        "path": exchange.path,
        "status": exchange.status,
        "reason": exchange.reason,
        "seconds": round(time.perf_counter() - exchange.started, 6),
        "waitedSeconds": round(exchange.waited, 6) or "",
        "resent": exchange.resent or "",
        "source": exchange.source,
        "auditId": exchange.audit_id,
        "traceId": trace_id(exchange.traceparent),
    }
    return {key: value for key, value in values.items() if value != ""}


def accept_traceparent(header: str | None) -> str:
    """The caller's trace context when it is well-formed, else a new one."""
    if header is not None and _TRACEPARENT.fullmatch(header):
        return header
    return f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-00"


def trace_id(traceparent: str) -> str:
    return traceparent.split("-")[1]
