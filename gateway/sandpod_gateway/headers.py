"""Which headers cross the gateway, as bytes and as they came: towards the runtime nothing that says who
somebody is except the gateway's own credential, towards the client nothing that is the gateway's or the
runtime's secret.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

RawHeaders = Sequence[tuple[bytes, bytes]]
# The lines of an answer's head that go on; None when it holds what no header may.
Filter = Callable[[RawHeaders], list[bytes] | None]

# About one connection only (RFC 9110, 7.6.1), or set by us for the next one.
HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"content-length",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
# Identity is settled at the door; who claims which address or host is of no use to the runtime and forgeable.
_NOT_TO_RUNTIME: Final = HOP_BY_HOP | {
    b"authorization",
    b"cookie",
    b"expect",
    b"forwarded",
    b"host",
    b"traceparent",
    b"x-real-ip",
}
_NOT_TO_RUNTIME_PREFIXES: Final = (b"impersonate-", b"x-forwarded-", b"x-remote-", b"x-sandpod-")
# Hostile code answers here: it must not set cookies for the host by which people reach the API.
_NOT_TO_CLIENT: Final = HOP_BY_HOP | {b"set-cookie"}
NOT_TO_CLIENT_PREFIXES: Final = (b"x-sandpod-",)

# A bare CR or another control character would let a header end where its reader likes.
_UNSAFE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def to_runtime(headers: RawHeaders, *, identity_headers: Iterable[str] = ()) -> list[bytes]:
    """Header lines for the runtime. `identity_headers` are the names and prefixes in which this door's caller
    is told, in lower case.
    """
    prefixes = (*_NOT_TO_RUNTIME_PREFIXES, *(name.encode() for name in identity_headers))
    return lines(headers, drop=_NOT_TO_RUNTIME, prefixes=prefixes)


def to_client(headers: RawHeaders) -> list[bytes] | None:
    """Header lines for the client; None when the runtime sent what no header may hold."""
    if not well_formed(headers):
        return None
    return lines(headers, drop=_NOT_TO_CLIENT, prefixes=NOT_TO_CLIENT_PREFIXES)


def well_formed(headers: RawHeaders) -> bool:
    return all(_TOKEN.fullmatch(name) and not _UNSAFE.search(value) for name, value in headers)


def values(headers: RawHeaders, wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name.lower() == wanted]


def lines(headers: RawHeaders, *, drop: frozenset[bytes], prefixes: tuple[bytes, ...]) -> list[bytes]:
    drop = drop | _named_by_connection(headers)
    kept: list[bytes] = []
    for name, value in headers:
        # Some servers read `_` as `-`: x_sandpod_credential is as good as the real one to them.
        lower = name.lower().replace(b"_", b"-")
        if lower not in drop and not lower.startswith(prefixes):
            kept.append(name + b": " + value + b"\r\n")
    return kept


def _named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    return frozenset(
        token.strip().lower() for value in values(headers, b"connection") for token in value.split(b",")
    )
