"""Which session a request means, if any."""

from sandpod_runtime.errors import invalid
from sandpod_runtime.wire import Request

# What the SDK sends as a session id when its user has turned sessions off.
NO_SESSION = "__DISABLE_SESSION__"
LONGEST = 256


def named(given: str | None, *, field: str = "sessionId") -> str | None:
    """The session that a body names; None for a stateless request."""
    if not given or given == NO_SESSION:
        return None
    if not given.strip():
        raise invalid(field, "a session id cannot be blank")
    if len(given) > LONGEST or not given.isprintable():
        raise invalid(field, f"a session id is at most {LONGEST} printable characters")
    return given


def named_or_hinted(given: str | None, request: Request) -> str | None:
    """The same, for the endpoints that the protocol lets name it in a header or the query as well.

    `Authorization`, which 0.12 reads too, may carry a real credential and is never taken for an id.
    """
    hints = (
        request.headers.get("X-Session-Id"),
        request.query.get("session"),
        request.query.get("sessionId"),
    )
    return named(given or next(filter(None, hints), None))
