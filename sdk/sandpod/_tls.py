"""The TLS settings of a connection to the API server, as Go's client would have them."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from sandpod._target import Target
from sandpod.errors import ConfigError


def context(target: Target, *, certificate: tuple[str, str] | None) -> ssl.SSLContext:
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
