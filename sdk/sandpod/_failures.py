"""Turns an answer that is not a success into the exception that says it best. Pure.

Three parties may have written the answer: the API server or the gateway (a Kubernetes Status), the runtime
(the wire protocol's error body), or some proxy in between (anything).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from sandpod._requests import Request
from sandpod.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotInstalled,
    NotReady,
    RuntimeFailure,
    SandpodError,
    Unauthenticated,
    Unavailable,
)

Json = dict[str, Any]


def from_response(*, status: int, headers: Mapping[str, str], body: bytes, request: Request) -> SandpodError:
    document = _document(body)
    retry_after = _seconds(headers.get("retry-after"))
    if document.get("kind") == "Status":
        return from_status(document, request=request, status=status, retry_after=retry_after)
    if isinstance(document.get("code"), str) and "message" in document:
        return from_protocol(document, status=status, retry_after=retry_after)
    text = " ".join(body[:300].decode(errors="replace").split()) or "no explanation"
    if status == 404:
        return _not_installed()
    if status == 401:
        return _unauthenticated("")
    if status in (429, 502, 503, 504):
        return Unavailable(f"Sandpod's API does not answer: {text}.", hint=_GATEWAY_HINT, status=status)
    return SandpodError(
        f"The cluster answered {status} to a request for {request.subject}: {text}.", status=status
    )


_GATEWAY_HINT = (
    "Is the gateway running? `kubectl get apiservice v1alpha1.run.sandpod.dev` says what the cluster sees."
)


def from_status(document: Json, *, request: Request, status: int, retry_after: float | None) -> SandpodError:
    """A Kubernetes Status, also one that came as the last event of a watch."""
    message = str(document.get("message") or "").strip() or f"The cluster answered {status}."
    details: Json = document.get("details") or {}
    match status:
        case 401:
            return _unauthenticated(message)
        case 403:
            # RBAC's sentence is "User x cannot verb resource …"; quota and the like are refusals of another
            # kind.
            hint = "Ask whoever runs the cluster for that permission." if " cannot " in message else ""
            return Forbidden(message, hint=hint, status=status)
        case 404:
            return _not_found(details, message=message, request=request)
        case 409:
            return Conflict(message, status=status)
        case 400 | 413 | 415 | 422:
            return Invalid(_each_cause(details) or message, status=status)
        case 503 if "/proxy/" in request.path and details.get("name"):
            return NotReady(message, status=status, retry_after=1.0 if retry_after is None else retry_after)
        case 429 | 500 | 502 | 503 | 504:
            return Unavailable(message, status=status)
        case _:
            return SandpodError(message, status=status)


def from_protocol(document: Json, *, status: int, retry_after: float | None) -> SandpodError:
    """The runtime's own words: `{code, message, context, httpStatus, timestamp, suggestion?}`."""
    code, message = str(document["code"]), str(document["message"])
    hint = str(document.get("suggestion") or "")
    if code == "CONTAINER_UNAVAILABLE":
        return NotReady(
            message, hint=hint, status=status, retry_after=1.0 if retry_after is None else retry_after
        )
    context: object = document.get("context")
    return RuntimeFailure(
        message,
        code=code,
        context=cast("Json", context) if isinstance(context, dict) else {},
        hint=hint,
        status=status,
    )


def _each_cause(details: Json) -> str:
    """One line for each thing that is wrong, each said once: the Status itself strings them together."""
    causes: list[Json] = details.get("causes") or []
    said = {str(cause.get("message")): str(cause.get("field") or "") for cause in causes}
    if len(causes) < 2 or not said:
        return ""
    lines = (f"\n  {field}: {message}" for message, field in said.items())
    return f"The {details.get('kind') or 'object'!s} is invalid:{''.join(lines)}"


def _not_found(details: Json, *, message: str, request: Request) -> SandpodError:
    if details.get("kind") == "namespaces":
        return NotFound(f'There is no namespace "{details.get("name")}".', status=404)
    if details.get("name") or "could not find the requested resource" not in message:
        return NotFound(f"There is no {request.subject}.", status=404)
    return _not_installed()


def _not_installed() -> NotInstalled:
    return NotInstalled(
        "This cluster has no Sandpod, or not all of it.",
        hint="Install its Helm chart, or choose another context.",
        status=404,
    )


def _unauthenticated(message: str) -> Unauthenticated:
    said = f" ({message})" if message and message != "Unauthorized" else ""
    return Unauthenticated(
        f"The cluster does not accept this identity{said}.",
        hint="Log in again, or choose another context.",
        status=401,
    )


def _document(body: bytes) -> Json:
    try:
        document: object = json.loads(body)
    except ValueError:
        return {}
    return cast("Json", document) if isinstance(document, dict) else {}


def _seconds(text: str | None) -> float | None:
    # The other form, a date, is one that nobody on this path sends.
    return float(text) if text is not None and text.isdecimal() else None
