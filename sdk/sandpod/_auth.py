"""Who we are towards the API server: the headers of a request and the client certificate of a connection."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

from sandpod import _plugin
from sandpod._plugin import Credential
from sandpod._target import Target
from sandpod.errors import CredentialError

# Projected service account tokens are replaced under us; kubectl looks again once a minute as well.
_TOKEN_FILE_SECONDS = 60.0
# A credential that is good for less than this may be refused by the time it arrives.
_MARGIN_SECONDS = 5.0


class Authenticator:
    """Keeps a plugin's credential until it expires, and a token file's content for a minute."""

    def __init__(
        self, target: Target, *, may_read_stdin: bool = True, clock: Callable[[], float] = time.time
    ) -> None:
        self._target = target
        self._may_read_stdin = may_read_stdin
        self._clock = clock
        self._credential: Credential | None = None
        self._token = ""
        self._token_read_at: float | None = None

    def headers(self) -> list[tuple[str, str]]:
        headers = list(self._target.impersonate)
        if authorization := self._authorization():
            headers.append(("Authorization", authorization))
        return headers

    def certificate(self) -> tuple[str, str] | None:
        """Certificate chain and key, as PEM."""
        target = self._target
        if target.certificate_data or target.certificate_file:
            return (
                target.certificate_data or _read(target.certificate_file),
                target.key_data or (_read(target.key_file) if target.key_file else ""),
            )
        credential = self._from_plugin()
        return (credential.certificate, credential.key) if credential and credential.certificate else None

    def forget(self) -> bool:
        """After a refusal: drops what can be fetched anew. False: there is nothing else to try."""
        had = self._credential is not None or self._token_read_at is not None
        self._credential = None
        self._token_read_at = None
        return had

    def _authorization(self) -> str:
        target = self._target
        if token := (self._token_of_file() if target.token_file else "") or target.token:
            return f"Bearer {token}"
        if target.username or target.password:
            return "Basic " + b64encode(f"{target.username}:{target.password}".encode()).decode()
        credential = self._from_plugin()
        return f"Bearer {credential.token}" if credential and credential.token else ""

    def _token_of_file(self) -> str:
        now = self._clock()
        if self._token_read_at is None or now - self._token_read_at > _TOKEN_FILE_SECONDS:
            self._token, self._token_read_at = _read(self._target.token_file).strip(), now
        return self._token

    def _from_plugin(self) -> Credential | None:
        target = self._target
        # What the kubeconfig says outright is not asked of a plugin again: kubectl does the same.
        if target.plugin is None or target.token or target.token_file or target.username:
            return None
        kept = self._credential
        if kept is None or (
            kept.expires_at is not None and kept.expires_at - _MARGIN_SECONDS < self._clock()
        ):
            self._credential = _plugin.run(target, target.plugin, may_read_stdin=self._may_read_stdin)
        return self._credential


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialError(f"The kubeconfig names {path}, which cannot be read: {error}.") from error
