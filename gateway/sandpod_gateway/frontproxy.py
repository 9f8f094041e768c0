"""Who the API server says is calling. It speaks for its users in request headers, and is believed only on a
connection that shows the front proxy's client certificate. Which CA signs that, which names it may have and
what the headers are called stands in ConfigMap kube-system/extension-apiserver-authentication.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast
from urllib.parse import unquote

from multidict import CIMultiDictProxy

from .errors import NotConfigured, Unauthenticated
from .identity import Identity

CONFIG_MAP_NAMESPACE: Final = "kube-system"
CONFIG_MAP_NAME: Final = "extension-apiserver-authentication"

NO_CERTIFICATE = (
    "this port is for the Kubernetes API server, which proves itself by its front-proxy client certificate: "
    "call /apis/run.sandpod.dev/v1alpha1 at the API server instead"
)


@dataclass(frozen=True, slots=True)
class Trust:
    """What the ConfigMap says, as one value: compared to see whether it has changed."""

    ca: str
    allowed_names: frozenset[str]
    user_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    @classmethod
    def from_config_map(cls, data: Mapping[str, str]) -> Self:
        ca = data.get("requestheader-client-ca-file", "")
        if not ca.strip():
            raise NotConfigured(
                f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP_NAME} has no requestheader-client-ca-file: "
                "the API server runs without --requestheader-client-ca-file, and aggregated APIs need it"
            )
        return cls(
            ca=ca,
            # None at all means that the CA signs for nobody else.
            allowed_names=frozenset(_list(data, "requestheader-allowed-names", ())),
            user_headers=_list(data, "requestheader-username-headers", ("X-Remote-User",)),
            # No default: an API server that does not know this header lets a client's own one through.
            uid_headers=_list(data, "requestheader-uid-headers", ()),
            group_headers=_list(data, "requestheader-group-headers", ("X-Remote-Group",)),
            extra_prefixes=_list(data, "requestheader-extra-headers-prefix", ("X-Remote-Extra-",)),
        )

    def header_prefixes(self) -> tuple[str, ...]:
        """Every header that tells who somebody is, in lower case: none of them goes on to a runtime."""
        headers = (*self.user_headers, *self.uid_headers, *self.group_headers, *self.extra_prefixes)
        return tuple(header.lower() for header in headers)


def identify(
    headers: CIMultiDictProxy[str], *, certificate: Mapping[str, Any] | None, trust: Trust
) -> Identity:
    """The identity in the headers. `certificate` is what TLS has verified against the trust's CA; without one
    the headers are anybody's claim.
    """
    if not certificate:
        raise Unauthenticated(NO_CERTIFICATE)
    name = _common_name(certificate)
    if trust.allowed_names and name not in trust.allowed_names:
        raise Unauthenticated(
            f"the client certificate of {name!r} is not the front proxy's: requestheader-allowed-names does "
            "not list that name"
        )
    user = _first(headers, trust.user_headers)
    if not user:
        raise Unauthenticated("the front proxy named no user")
    identity = Identity(
        user=user,
        uid=_first(headers, trust.uid_headers),
        groups=tuple(
            group for header in trust.group_headers for group in headers.getall(header, ()) if group
        ),
        extra=_extra(headers, trust.extra_prefixes),
    )
    try:
        # Bytes that are no text come through the parser as lone surrogates: no API takes them, no log shows
        # them.
        for text in _texts(identity):
            text.encode()
    except UnicodeEncodeError:
        raise Unauthenticated("the identity in the front proxy's headers is not UTF-8") from None
    return identity


def _texts(identity: Identity) -> tuple[str, ...]:
    extra = (text for key, values in identity.extra for text in (key, *values))
    return (identity.user, identity.uid, *identity.groups, *extra)


def _extra(
    headers: CIMultiDictProxy[str], prefixes: tuple[str, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for prefix in prefixes:
        for name, value in headers.items():
            if name.lower().startswith(prefix.lower()):
                # Keys are lower-cased by HTTP and percent-encoded by the API server, since they may hold a
                # slash.
                found.setdefault(_unescape(name[len(prefix) :].lower()), []).append(value)
    return tuple((key, tuple(values)) for key, values in sorted(found.items()))


def _unescape(text: str) -> str:
    """As Go's url.PathUnescape, which leaves a text with a broken escape as it is."""
    for escape in text.split("%")[1:]:
        if len(escape) < 2 or not all(digit in "0123456789abcdef" for digit in escape[:2]):
            return text
    return unquote(text, errors="surrogateescape")


def _first(headers: CIMultiDictProxy[str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := headers.get(name))), "")


def _common_name(certificate: Mapping[str, Any]) -> str:
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", certificate.get("subject", ()))
    found = [value for part in subject for key, value in part if key == "commonName"]
    return found[-1] if found else ""


def _list(data: Mapping[str, str], entry: str, default: tuple[str, ...]) -> tuple[str, ...]:
    text = data.get(entry)
    if not text:
        return default
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
        raise NotConfigured(f"{entry} in ConfigMap {CONFIG_MAP_NAME} is not a JSON list of strings: {text!r}")
    return tuple(cast("list[str]", value))
