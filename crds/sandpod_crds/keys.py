"""All secrets of a sandbox are derived, none is stored: HMAC-SHA-256 of the installation's key over what the
secret is for. Whoever holds the key can compute them again after a restart; whoever reads the cluster's
objects cannot. Standard library only.
"""

import base64
import hashlib
import hmac

KEY_BYTES = 32

# 20 bytes are 32 characters of base32 and 160 bits; the preview token is shorter because it shares the 63
# characters of a DNS label with the port and the sandbox's name.
_SECRET_CHARACTERS = 32
_PREVIEW_CHARACTERS = 20


def bind_token(*, key: bytes, namespace: str, pod_name: str, nonce: str = "") -> str:
    """What the operator shows to a fresh pod to bind it, once. The pod's spec holds only its SHA-256. By the
    nonce in its annotations, so that a token which an earlier pod of the name has seen binds no later one.
    Without a nonce: of pods that were made before there were any.
    """
    parts = (nonce,) if nonce else ()
    return _derive(key, "bind", namespace, pod_name, *parts)[:_SECRET_CHARACTERS]


def credential(*, key: bytes, namespace: str, pod_uid: str) -> str:
    """What a request to a bound runtime carries. By UID, so that a pod of the same name never accepts an old
    one. By namespace, so that whoever may write a status in one gets nothing with the UID of another's pod.
    """
    return _derive(key, "credential", namespace, pod_uid)[:_SECRET_CHARACTERS]


def proof(*, credential: str, nonce: str) -> str:
    """What only the runtime that holds the credential can answer to a nonce. The prefix keeps apart what is
    signed here and whatever else may ever be.
    """
    message = b"sandpod-proof:" + nonce.encode()
    return hmac.new(credential.encode(), message, hashlib.sha256).hexdigest()


def preview_token(*, key: bytes, sandbox_uid: str, port: int, version: int) -> str:
    """The token in a preview URL: it opens one port of one sandbox, until `version` is raised."""
    return _derive(key, "preview", sandbox_uid, str(port), str(version))[:_PREVIEW_CHARACTERS]


def login_key(*, key: bytes, kind: str) -> bytes:
    """What logins at private previews are signed with, another one for each kind: a code that came by a link
    must never pass as a cookie.
    """
    return _derive(key, "preview-login", kind).encode()


def sha256_hex(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _derive(key: bytes, purpose: str, *parts: str) -> str:
    if len(key) != KEY_BYTES:
        raise ValueError(f"the installation's key has {len(key)} bytes and must have {KEY_BYTES}")
    # Each part goes with its length: without it ("a", "bc") and ("ab", "c") would share a secret.
    message = b"".join(
        len(data).to_bytes(4, "big") + data
        for data in (part.encode() for part in ("sandpod.dev/v1", purpose, *parts))
    )
    digest = hmac.new(key, message, hashlib.sha256).digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()
