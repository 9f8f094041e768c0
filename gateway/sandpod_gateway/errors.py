"""What the gateway itself answers instead of a runtime: each refusal with its HTTP status, Kubernetes' reason
and a message that says what to do. A door decides how a refusal looks; the aggregated API shows a Status
object.
"""

from typing import Any, ClassVar

from sandpod_crds import names

Json = dict[str, Any]


class NotConfigured(Exception):
    """Something that the gateway needs from the cluster is not there yet, or not as it has to be."""


class Refusal(Exception):
    """A request that ends at the gateway."""

    code: ClassVar[int]
    reason: ClassVar[str]

    def __init__(self, message: str, *, name: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.name = name
        self.retry_after = retry_after


class BadRequest(Refusal):
    code = 400
    reason = "BadRequest"


class Unauthenticated(Refusal):
    code = 401
    reason = "Unauthorized"


class Denied(Refusal):
    code = 403
    reason = "Forbidden"


class NotFound(Refusal):
    code = 404
    reason = "NotFound"


class NotAllowed(Refusal):
    code = 405
    reason = "MethodNotAllowed"


class TooSlow(Refusal):
    code = 408
    reason = "Timeout"


class TooLarge(Refusal):
    code = 413
    reason = "RequestEntityTooLarge"


class Invalid(Refusal):
    """Well-formed, and nothing that can be."""

    code = 422
    reason = "Invalid"


class TooMany(Refusal):
    code = 429
    reason = "TooManyRequests"


class BrokenOff(Refusal):
    """The runtime has the request, and no answer came: it may have been carried out."""

    code = 502
    reason = "BadGateway"


class ProgramBrokeOff(BrokenOff):
    """Not the runtime but a program of the user's, which may do as it likes."""


class NotReady(Refusal):
    """Nothing has been done; the same request may succeed in a moment."""

    code = 503
    reason = "ServiceUnavailable"

    def __init__(self, message: str, *, name: str | None = None, retry_after: int = 1) -> None:
        super().__init__(message, name=name, retry_after=retry_after)


class Conflict(Refusal):
    """As things stand it cannot be done, however often it is asked for."""

    code = 409
    reason = "Conflict"


class NotStarting(NotReady):
    """Its starts have failed. They are tried again now and then, whoever asks; somebody has to look at it."""


class Unchecked(NotReady):
    """Whether this may be done nobody knows, because the API server did not say."""


class PodLeaving(NotReady):
    """The pod that the request was meant for is going or gone, and nothing has been done: another pod may be
    sent the same request. `certain` when the runtime itself has said so.
    """

    def __init__(self, message: str, *, certain: bool = False) -> None:
        super().__init__(message)
        self.certain = certain


class Unreachable(PodLeaving):
    """Nobody took the connection: not a byte has been sent."""


class Stale(NotReady):
    """A kept connection was closed in the moment of its use, by a program that is probably there still."""


class NobodyListens(NotReady):
    """The sandbox is awake, and no program in it listens on this port."""


class Failed(Refusal):
    """A bug of ours; what it was is in the log, never in the answer."""

    code = 500
    reason = "InternalError"

    def __init__(self) -> None:
        super().__init__("the gateway failed; its log has more under this request's trace id")


def unknown_sandbox(*, namespace: str, name: str) -> NotFound:
    return NotFound(
        f'{names.SANDBOXES}.{names.GROUP} "{name}" not found in namespace "{namespace}"; '
        f"`kubectl get sandboxes -n {namespace}` lists those that are there",
        name=name,
    )


def status_object(refusal: Refusal) -> Json:
    """What kubectl and every client library of Kubernetes can show."""
    details: Json = {}
    if refusal.name is not None:
        details |= {"name": refusal.name, "group": names.GROUP, "kind": names.SANDBOXES}
    if refusal.retry_after is not None:
        details["retryAfterSeconds"] = refusal.retry_after
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refusal.message,
        "reason": refusal.reason,
        **({"details": details} if details else {}),
        "code": refusal.code,
    }
