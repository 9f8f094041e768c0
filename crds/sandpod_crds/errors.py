"""What can go wrong in this room: the Kubernetes API's refusals as exceptions that callers can tell apart,
and text that is not a duration.
"""

import json
from typing import Any, cast

Json = dict[str, Any]


class NotConfigured(Exception):
    """There is no API server to talk to: neither a pod's service account nor a usable kubeconfig."""


class BadDuration(ValueError):
    """Text that is not a duration; the message says what one looks like."""


class ApiError(Exception):
    """The API server said no (or, as Unavailable, nothing). `status` is 0 when no answer came."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: Json | None = None,
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Json = details or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}"


class NotFound(ApiError):
    """404"""


class Conflict(ApiError):
    """409: the object has changed since it was read, its UID is another, or it exists already."""

    @property
    def already_exists(self) -> bool:
        return self.reason == "AlreadyExists"


class Forbidden(ApiError):
    """403: RBAC, a quota, Pod Security or another admission plugin."""


class Invalid(ApiError):
    """422: the object breaks its schema or a rule."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old; list again."""


class Throttled(ApiError):
    """429: come back after `retry_after` seconds."""


class Unavailable(ApiError):
    """5xx, a time-out, or no connection: the request may or may not have been carried out."""


_BY_STATUS: dict[int, type[ApiError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Throttled,
}


def from_status(status: int, body: Json, *, retry_after: float | None = None) -> ApiError:
    """The exception for a Kubernetes `Status` object that came with this HTTP status (or inside a watch)."""
    kind = Unavailable if status >= 500 else _BY_STATUS.get(status, ApiError)
    details = body.get("details")
    if retry_after is None and isinstance(details, dict):
        seconds = cast("Json", details).get("retryAfterSeconds")
        retry_after = float(seconds) if isinstance(seconds, int) and seconds > 0 else None
    return kind(
        status,
        str(body.get("reason") or "Unknown"),
        str(body.get("message") or "the API server gave no message"),
        cast("Json", details) if isinstance(details, dict) else None,
        retry_after=retry_after,
    )


def from_response(status: int, text: bytes, *, retry_after: float | None = None) -> ApiError:
    """The same for the raw body of a response; a proxy in between may have answered with something else than
    JSON.
    """
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict) or "message" not in body:
        body = {"message": text[:300].decode(errors="replace").strip()}
    return from_status(status, cast("Json", body), retry_after=retry_after)


class NotStructural(Exception):
    """A model says something that a CRD's schema cannot say."""
