"""The API server for people who bring their own token. Nothing of ours goes along, neither token nor client
certificate: what they may do there is what they may do.
"""

import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp
from kubernetes.aio.client.configuration import Configuration
from sandpod_crds.kube import watchful_socket
from yarl import URL

CONNECT_SECONDS: Final = 5.0
# The API server gives up on requests after 60 s, unless they are watches and logs.
ANSWER_SECONDS: Final = 65.0


class ApiServer:
    def __init__(self, configuration: Configuration) -> None:
        self._host = str(configuration.host)
        self._configuration = configuration
        self._server_name = configuration.tls_server_name
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, endless: bool
    ) -> aiohttp.ClientResponse:
        """`target` is path and query as they are to arrive. `endless`: an answer that goes on by itself."""
        limits = aiohttp.ClientTimeout(
            total=None if endless else ANSWER_SECONDS, sock_connect=CONNECT_SECONDS
        )
        return await self._open().request(
            method,
            URL(self._host + target, encoded=True),
            headers=headers,
            data=body,
            # Where it leads to was not judged here.
            allow_redirects=False,
            timeout=limits,
            server_hostname=self._server_name,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                # Whoever asks for a place has one before: here is no queue.
                ssl=_trust(self._configuration),
                limit=0,
                socket_factory=watchful_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                proxy=self._configuration.proxy,
                auto_decompress=False,
                skip_auto_headers=("Accept-Encoding", "Content-Type", "User-Agent"),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def _trust(configuration: Configuration) -> ssl.SSLContext:
    """That of kubernetes.aio without our client certificate, by which the API server would know us."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.disable_strict_ssl_verification:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
