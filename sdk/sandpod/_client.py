"""The connection to one cluster as one identity: sends what `_requests` says, raises what `errors` has."""

from __future__ import annotations

import functools
import json
import os
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import httpx

from sandpod import _kubeconfig, _proxy, _tls, _transport
from sandpod._auth import Authenticator
from sandpod._failures import from_response
from sandpod._requests import Request
from sandpod._version import VERSION
from sandpod._watch import EventLines, Expired
from sandpod.errors import ConfigError, SandpodError

Json = dict[str, Any]

_CONNECT_SECONDS = 10.0
_MAX_ERROR_BYTES = 1 << 20


class Client:
    """Where the kubeconfig points, unless told otherwise. May be used by several threads at a time."""

    def __init__(
        self,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        namespace: str | None = None,
        impersonate: str | None = None,
        impersonate_groups: Sequence[str] = (),
        may_read_stdin: bool = True,
    ) -> None:
        """`may_read_stdin=False` keeps a credential plugin from asking on a standard input that is used
        otherwise.
        """
        self.target = _kubeconfig.load(
            kubeconfig=kubeconfig,
            context=context,
            namespace=namespace,
            impersonate=impersonate,
            impersonate_groups=impersonate_groups,
        )
        self._proxy = _proxy.choose(
            server=self.target.server, configured=self.target.proxy_url, environ=os.environ
        )
        self._auth = Authenticator(self.target, may_read_stdin=may_read_stdin)
        self._lock = threading.Lock()
        self._http: httpx.Client | None = None
        self._retired: list[httpx.Client] = []
        self._certificate: tuple[str, str] | None = None

    @property
    def namespace(self) -> str:
        return self.target.namespace

    def send(self, request: Request) -> Json:
        """One request and its whole answer, which is JSON."""
        response = self.open(request)
        body = b"".join(self.pieces(response, request=request))
        try:
            answer: Json = json.loads(body)
        except ValueError:
            raise from_response(
                status=response.status_code, headers=response.headers, body=body, request=request
            ) from None
        return answer

    def open(self, request: Request) -> httpx.Response:
        """The answer with its body still to come. It is a success, and the caller closes it."""
        response = self._attempt(request)
        if response.status_code == 401 and self._auth.forget():
            response.close()
            response = self._attempt(request)
        if response.is_success:
            return response
        body = b""
        for piece in self.pieces(response, request=request):
            body += piece
            if len(body) > _MAX_ERROR_BYTES:
                response.close()
                break
        raise from_response(status=response.status_code, headers=response.headers, body=body, request=request)

    def pieces(self, response: httpx.Response, *, request: Request) -> Iterator[bytes]:
        """The body as it arrives.

        Whoever stops early closes the connection, which is how the other side learns.
        """
        try:
            yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise _transport.broken(error, silence=request.read_timeout) from error
        finally:
            response.close()

    def watch(self, request: Request) -> Iterator[Json]:
        """The events of one watch until the server ends it. Raises Expired when it must be begun anew."""
        try:
            response = self.open(request)
        except SandpodError as error:
            if error.status == 410:
                raise Expired(str(error)) from error
            raise
        lines = EventLines(request=request)
        pieces = self.pieces(response, request=request)
        try:
            for piece in pieces:
                yield from lines.feed(piece)
        finally:
            response.close()

    def close(self) -> None:
        with self._lock:
            for http in (*self._retired, self._http):
                if http is not None:
                    http.close()
            self._retired.clear()
            self._http = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _attempt(self, request: Request) -> httpx.Response:
        http = self._connected()
        headers = [
            ("Accept", request.accept),
            ("User-Agent", f"sandpod/{VERSION}"),
            # Streams arrive as they are written; nothing on the way may wait for more in order to compress
            # it.
            ("Accept-Encoding", "identity"),
            *self._auth.headers(),
        ]
        content: bytes | None = None
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
            content = json.dumps(request.body, separators=(",", ":")).encode()
        try:
            built = http.build_request(
                request.method,
                self.target.server + request.path,
                params=request.query or None,
                headers=[(name.encode(), value.encode()) for name, value in headers],
                content=content,
                timeout=httpx.Timeout(request.read_timeout, connect=_CONNECT_SECONDS, pool=None),
            )
            return http.send(built, stream=True)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise _transport.unreachable(error, target=self.target, environ_proxy=self._proxy) from error

    def _connected(self) -> httpx.Client:
        with self._lock:
            certificate = self._auth.certificate()
            if self._http is not None and certificate == self._certificate:
                return self._http
            if self._http is not None:
                # Not closed yet: another thread may be in the middle of a stream on it.
                self._retired.append(self._http)
            self._certificate = certificate
            settings = _tls.context(self.target, certificate=certificate)
            try:
                self._http = httpx.Client(
                    verify=settings, proxy=self._proxy, trust_env=False, follow_redirects=False
                )
            except (ImportError, ValueError) as error:
                raise ConfigError(f"The proxy {self._proxy!r} cannot be used: {error}.") from error
            return self._http


def default() -> Client:
    """The client of whoever names none: made on first use, one per process (a fork must not share it)."""
    return _default_of(os.getpid())


@functools.cache
def _default_of(pid: int) -> Client:
    return Client()
