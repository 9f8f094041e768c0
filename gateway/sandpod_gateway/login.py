"""What proves a login at a private preview: the code in a one-time link, and the cookie that it is exchanged
for. Both say who somebody is and which port of which sandbox it is good for, and both are signed: there is no
list of sessions that replicas would have to share.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sandpod_crds import keys

from .errors import Invalid, Unauthenticated
from .identity import Identity
from .targets import Target

# Browsers keep 4096 bytes of a cookie, its name and attributes included.
MOST: Final = 3800


class Kind(StrEnum):
    CODE = "code"
    COOKIE = "cookie"


class LinkUsed(Unauthenticated):
    """Or expired, or for another address: which of them is nobody's business who has it."""


@dataclass(frozen=True, slots=True)
class Login:
    """`nonce` tells one code from the next one. `expires` is in seconds since 1970."""

    sandbox_uid: str
    port: int
    token_version: int
    identity: Identity
    expires: int
    nonce: str = ""

    def opens(self, target: Target) -> bool:
        """A sandbox that was made anew, and a token that was rotated, are other ones."""
        return (self.sandbox_uid, self.port, self.token_version) == (
            target.route.uid,
            target.port.port,
            target.port.token_version,
        )


class Seals:
    def __init__(self, *, key: bytes) -> None:
        self._keys = {kind: keys.login_key(key=key, kind=kind) for kind in Kind}

    def seal(self, kind: Kind, login: Login) -> str:
        payload = _encode(json.dumps(_values(login), separators=(",", ":")).encode())
        sealed = f"{payload}.{self._signature(kind, payload)}"
        if len(sealed) > MOST:
            raise Invalid(
                "you are in too many groups for a login that a browser can keep: send a bearer token in "
                "`Authorization` instead"
            )
        return sealed

    def open(self, kind: Kind, sealed: str, *, now: float) -> Login | None:
        """None when it is not ours, or has expired."""
        payload, _, signature = sealed.partition(".")
        if len(sealed) > MOST or not sealed.isascii():
            return None
        if not hmac.compare_digest(signature, self._signature(kind, payload)):
            return None
        login = _login(json.loads(_decode(payload)))
        return login if login.expires > now else None

    def _signature(self, kind: Kind, payload: str) -> str:
        return _encode(hmac.new(self._keys[kind], payload.encode(), hashlib.sha256).digest())


def _values(login: Login) -> list[Any]:
    who = login.identity
    return [
        login.sandbox_uid,
        login.port,
        login.token_version,
        login.expires,
        login.nonce,
        who.user,
        who.uid,
        who.groups,
        who.extra,
    ]


def _login(values: list[Any]) -> Login:
    """Of what has our signature, so it has the shape that we gave it."""
    sandbox_uid, port, token_version, expires, nonce, user, uid, groups, extra = values
    return Login(
        sandbox_uid=sandbox_uid,
        port=port,
        token_version=token_version,
        expires=expires,
        nonce=nonce,
        identity=Identity(
            user=user,
            uid=uid,
            groups=tuple(groups),
            extra=tuple((key, tuple(texts)) for key, texts in extra),
        ),
    )


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
