"""What httpx's failures mean for somebody who wanted to reach a cluster. Pure."""

from __future__ import annotations

import ssl
from typing import TypeVar

import httpx

from sandpod._target import Target
from sandpod.errors import ConfigError, ConnectionLost, SandpodError, Unavailable

E = TypeVar("E", bound=BaseException)


def unreachable(error: Exception, *, target: Target, environ_proxy: str | None) -> SandpodError:
    """For a request that got no answer."""
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return ConfigError(f"The kubeconfig's server address {target.server!r} is not a URL.")
    refused = _cause(error, ssl.SSLCertVerificationError)
    if refused is not None:
        return ConfigError(
            f"The certificate of {target.label} is not trusted: {refused.verify_message}.",
            hint="The kubeconfig's certificate-authority must be the one of this cluster.",
        )
    through = f" through the proxy {environ_proxy}" if environ_proxy else ""
    return Unavailable(
        f"The cluster at {target.label} cannot be reached{through}: {_reason(error)}.",
        hint="Is it running, and is this the right context?",
    )


def broken(error: httpx.TransportError, *, silence: float) -> ConnectionLost:
    """For an answer that had begun."""
    if isinstance(error, httpx.ReadTimeout):
        return ConnectionLost(f"The connection to the cluster has been silent for {silence:.0f} s.")
    return ConnectionLost(f"The connection to the cluster broke off: {_reason(error)}.")


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no answer in time"
    if isinstance(error, httpx.ReadTimeout):
        return "it took the request and did not answer in time"
    if isinstance(error, httpx.RemoteProtocolError) and (
        "disconnected" in str(error) or "closed" in str(error)
    ):
        return "it was closed at the other end"
    cause = _cause(error, OSError)
    if cause is not None and cause.strerror and not isinstance(cause, ssl.SSLError):
        return cause.strerror[0].lower() + cause.strerror[1:]
    return str(error).rstrip(".") or type(error).__name__


def _cause(error: BaseException | None, kind: type[E]) -> E | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error
