"""The serving certificate and the front proxy's CA, exchangeable while connections are open. Each new
connection gets the newest pair; `is_current` tells of an older one, which a door then closes after its next
answer.
"""

import os
import ssl
from typing import Final

_KEYS: Final = "sandpod-gateway-tls"


class ServingTls:
    """One SSL context for the life of the listening socket; it hands each handshake on to the newest one."""

    def __init__(self, *, certificate: str, key: str, client_ca: str) -> None:
        self._current = _context(certificate=certificate, key=key, client_ca=client_ca)
        self.listening = _context(certificate=certificate, key=key, client_ca=client_ca)
        self.listening.sni_callback = self._choose

    def replace(self, *, certificate: str, key: str, client_ca: str) -> None:
        """Raises ssl.SSLError or ValueError when they do not fit together; the old ones stay then."""
        self._current = _context(certificate=certificate, key=key, client_ca=client_ca)

    def is_current(self, connection: ssl.SSLObject | ssl.SSLSocket | None) -> bool:
        return connection is not None and connection.context is self._current

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
        # Called without a server name as well. From here on OpenSSL takes certificate and CA from this
        # context.
        connection.context = self._current


def _context(*, certificate: str, key: str, client_ca: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # 1.3 without tickets: a resumed session would bring the client certificate of a CA that is trusted no
    # more.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    # Asked for, not insisted on: whoever has none is told in HTTP what this port is for.
    context.verify_mode = ssl.CERT_OPTIONAL
    # As Go does it: any certificate in the bundle is an anchor, self-signed or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=client_ca)
    # The API server then sends one request per connection at a time, which is what this server does best.
    context.set_alpn_protocols(["http/1.1"])
    _load_key_pair(context, certificate=certificate, key=key)
    return context


def _load_key_pair(context: ssl.SSLContext, *, certificate: str, key: str) -> None:
    # OpenSSL's binding reads key pairs from files only; this one is in memory and has no name.
    descriptor = os.memfd_create(_KEYS)
    try:
        with os.fdopen(os.dup(descriptor), "w") as file:
            file.write(f"{certificate.rstrip()}\n{key.rstrip()}\n")
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
