"""Who this runtime is for: nobody, until one bind with the token whose SHA-256 the pod's spec carries."""

import hashlib
import hmac
import time

import msgspec

from sandpod_runtime.errors import Fault
from sandpod_runtime.models.lifecycle import BindRequest


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    request: BindRequest
    at: float


class Identity:
    def __init__(self, *, bind_sha256: str, insecure: bool) -> None:
        self._bind_sha256 = bind_sha256.encode("ascii")
        self.insecure = insecure
        self.started_at = time.time()
        self.bound: Bound | None = None

    def check_token(self, token: str) -> None:
        """Before the request's body is looked at: a stranger learns nothing, also not that it was bound
        already.
        """
        digest = hashlib.sha256(_bytes(token)).hexdigest().encode("ascii")
        if not self._bind_sha256 or not hmac.compare_digest(digest, self._bind_sha256):
            raise Fault("UNAUTHENTICATED", "the bind token is not the one that this runtime was started for")
        if self.bound is not None:
            raise Fault("ALREADY_BOUND", "this runtime is bound, and a bind token is good for one bind")

    def bind(self, request: BindRequest) -> None:
        if self.bound is not None:
            # Two binds whose bodies arrived side by side: the first one counts.
            raise Fault("ALREADY_BOUND", "this runtime is bound, and a bind token is good for one bind")
        self.bound = Bound(request=request, at=time.time())

    def accepts(self, credential: str) -> bool:
        if self.bound is None:
            return False
        return hmac.compare_digest(_bytes(credential), _bytes(self.bound.request.credential))

    def proof(self, nonce: str) -> str:
        """That we are the one who was given the credential, for whoever will not send it before that."""
        if self.bound is None:
            raise Fault("NOT_BOUND", "this runtime is not bound, and has nothing to prove who it is with")
        return proof(credential=self.bound.request.credential, nonce=nonce)


def proof(*, credential: str, nonce: str) -> str:
    # The prefix keeps apart what is signed here and whatever else may ever be: anybody may choose the nonce.
    message = b"sandpod-proof:" + nonce.encode()
    return hmac.new(_bytes(credential), message, hashlib.sha256).hexdigest()


def _bytes(text: str) -> bytes:
    # Headers may hold any byte; aiohttp hands them over as surrogates.
    return text.encode("utf-8", "surrogateescape")
