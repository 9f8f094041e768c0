"""The TLS settings of a connection to the API server, as Go's client would have them."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any

from sandpod._target import Target
from sandpod.errors import ConfigError


class _Named(ssl.SSLContext):
    """Expects another name in the server's certificate than the address has (`tls-server-name`).

    Here and not at the HTTP client, which has no such setting for a connection through a proxy.
    """

    expected: str | None = None

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        return super().wrap_socket(sock, *args, **options | self._name())

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, *args, **options | self._name())

    def _name(self) -> dict[str, str]:
        return {"server_hostname": self.expected} if self.expected else {}


def context(target: Target, *, certificate: tuple[str, str] | None) -> ssl.SSLContext:
    settings = _Named(ssl.PROTOCOL_TLS_CLIENT)
    settings.expected = target.tls_server_name or None
    settings.minimum_version = ssl.TLSVersion.TLSv1_2
    if target.insecure:
        settings.check_hostname = False
        settings.verify_mode = ssl.CERT_NONE
    else:
        _trust(settings, target)
    if certificate is not None:
        _identify(settings, certificate=certificate, context=target.context)
    return settings


def _trust(settings: ssl.SSLContext, target: Target) -> None:
    # What the kubeconfig names is trusted as it is, also when it is no root and when, as kubeadm's once
    # did, it lacks extensions that the strict mode of Python 3.13 asks for: kubectl takes such a file.
    settings.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    settings.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not (target.ca_data or target.ca_file):
        settings.load_default_certs()
        return
    try:
        settings.load_verify_locations(
            cafile=None if target.ca_data else target.ca_file, cadata=target.ca_data or None
        )
    except OSError as error:
        source = "certificate-authority-data" if target.ca_data else target.ca_file
        raise ConfigError(f"No certificate authority can be read from {source}: {error}.") from error


def _identify(settings: ssl.SSLContext, *, certificate: tuple[str, str], context: str) -> None:
    chain, key = certificate
    # OpenSSL takes a client's key from a file only. It exists for the blink of this call, for this user
    # alone.
    handle, name = tempfile.mkstemp(prefix="sandpod-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(chain.rstrip() + "\n" + key)
        settings.load_cert_chain(name, password=_refuse_to_ask)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"The client certificate of context {context!r} and its key cannot be used: {error}."
        ) from error
    finally:
        Path(name).unlink()


def _refuse_to_ask() -> str:
    # Without this, OpenSSL would ask the terminal for the passphrase of an encrypted key.
    raise ValueError("the key is encrypted")
