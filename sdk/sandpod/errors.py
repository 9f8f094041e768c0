"""What can go wrong, as exceptions: every message says what happened, every hint what to do about it.

All of them are SandpodErrors. `str()` of one is the message followed by the hint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandpod._results import ExecResult

Json = dict[str, Any]


class SandpodError(Exception):
    """The base of all: `message` and `hint` are sentences, `status` the HTTP status if there was one."""

    def __init__(self, message: str, *, hint: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class ConfigError(SandpodError):
    """The kubeconfig (or what it points to) is missing or wrong."""


class CredentialError(ConfigError):
    """A credential could not be had: a plugin failed, a token file is gone."""


class Unauthenticated(SandpodError):
    """The cluster does not know who this is."""


class Forbidden(SandpodError):
    """The cluster knows who this is, and that they may not do it. The message names the permission."""


class NotFound(SandpodError):
    """There is no such object."""


class NotInstalled(SandpodError):
    """The cluster answers, and has no Sandpod."""


class Conflict(SandpodError):
    """There is one of that name already, or it has changed meanwhile."""


class Invalid(SandpodError):
    """The request was refused for what it says."""


class Unavailable(SandpodError):
    """Nobody answers, or only somebody who cannot help: worth trying again."""


class ConnectionLost(Unavailable):
    """The answer broke off in the middle: what became of the command is not known."""


class NotReady(SandpodError):
    """The sandbox exists and cannot take requests yet."""

    def __init__(
        self, message: str, *, hint: str = "", status: int | None = None, retry_after: float = 1.0
    ) -> None:
        super().__init__(message, hint=hint, status=status)
        self.retry_after = retry_after


class TimedOut(SandpodError, TimeoutError):
    """What was waited for did not happen in time. `last` is the sandbox as it was seen last."""

    def __init__(self, message: str, *, hint: str = "", last: Json | None = None) -> None:
        super().__init__(message, hint=hint)
        self.last = last


class RuntimeFailure(SandpodError):
    """The runtime in the sandbox refused or failed: `code` and `context` are the wire protocol's."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        context: Json | None = None,
        hint: str = "",
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint, status=status)
        self.code = code
        self.context: Json = context or {}


class CommandFailed(SandpodError):
    """A command that was to succeed (`check=True`) did not. `result` has its output."""

    def __init__(self, message: str, *, result: ExecResult) -> None:
        super().__init__(message)
        self.result = result
