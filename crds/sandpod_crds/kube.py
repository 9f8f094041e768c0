"""The one way to the Kubernetes API for operator and gateway: dicts in, dicts out, errors of our own. It uses
the configuration and transport of kubernetes.aio and none of its 700 models, which cost memory and time per
call.
"""

import asyncio
import json
import random
import socket
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Self, cast
from urllib.parse import urlencode

import aiohttp
from aiohttp import http_exceptions
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from yarl import URL

from .errors import ApiError, Gone, Json, Throttled, Unavailable, from_response, from_status
from .keepalive import watch_over
from .kube_configuration import find_configuration
from .names import FIELD_MANAGER

MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

JSON: Final = "application/json"
# Names, labels and versions of the objects, without their specs and statuses
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

PAGE: Final = 500
# The longest line of a watch. An object is at most 1.5 MiB in etcd, and JSON escapes can blow it up; a line
# beyond this is not an object, and reading on would let whoever wrote it fill our memory.
MAX_EVENT: Final = 16 * 1024 * 1024
READ_ATTEMPTS: Final = 4
FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0
# How long after its own `timeoutSeconds` the server may take to end a watch before we call the connection
# dead
WATCH_GRACE: Final = 15.0

Query = Mapping[str, str | int | bool]


def watchful_socket(address: Any) -> socket.socket:
    """For a connection to the API server: it hears when the other side has died. `address` is an entry of
    getaddrinfo's; aiohttp's type for it is not complete.
    """
    family, kind, protocol = address[:3]
    made = socket.socket(family, kind, protocol)
    watch_over(made)
    return made


class _Rest(RESTClientObject):
    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(ssl=self.ssl_context, socket_factory=watchful_socket)


class Kube:
    """A connection pool to one API server."""

    def __init__(self, configuration: Configuration) -> None:
        # The session must not look at the environment: it would start a thread per request to read ~/.netrc
        # and the proxy variables. The configuration holds the proxy already.
        configuration.client_session_kwargs = {"trust_env": False, "read_bufsize": MAX_EVENT // 2}
        self._configuration = configuration
        # Any: kubernetes.aio has no types worth the name.
        self._rest: Any = _Rest(configuration)

    @classmethod
    async def connect(cls) -> Self:
        """As the pod's service account when there is one, else by kubeconfig ($KUBECONFIG)."""
        return cls(await find_configuration())

    @property
    def configuration(self) -> Configuration:
        """Where the API server is, for those who bring credentials of their own."""
        return self._configuration

    @property
    def host(self) -> str:
        return str(self._configuration.host)

    async def close(self) -> None:
        await self._rest.close()

    async def get(self, path: str, *, query: Query | None = None) -> Json:
        return await self._read(path, query=query)

    async def list(self, path: str, *, query: Query | None = None, metadata_only: bool = False) -> Json:
        """All items, fetched in pages of one consistent snapshot, under the last page's `metadata`."""
        accept = METADATA_ONLY if metadata_only else JSON
        try:
            return await self._list_pages(path, query={"limit": PAGE, **(query or {})}, accept=accept)
        except Gone:
            # The snapshot was compacted away between two pages; one big answer cannot be.
            return await self._read(path, query=query, accept=accept)

    async def create(self, path: str, body: Json, *, query: Query | None = None) -> Json:
        return await self.request("POST", path, query=_managed(query), body=body)

    async def replace(self, path: str, body: Json, *, query: Query | None = None) -> Json:
        return await self.request("PUT", path, query=_managed(query), body=body)

    async def apply(self, path: str, body: Json, *, query: Query | None = None) -> Json:
        """Server-side apply. `path` names the object; a `metadata.resourceVersion` in the body is a
        precondition.
        """
        return await self.request(
            "PATCH", path, query={"force": True, **_managed(query)}, body=body, content_type=APPLY_PATCH
        )

    async def patch(
        self,
        path: str,
        body: Json,
        *,
        content_type: str = MERGE_PATCH,
        query: Query | None = None,
    ) -> Json:
        return await self.request("PATCH", path, query=_managed(query), body=body, content_type=content_type)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_seconds: int | None = None,
        query: Query | None = None,
    ) -> Json:
        """With a UID, only that very object: another of the same name is a Conflict. With a resourceVersion,
        only as long as it has not been changed.
        """
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {"uid": uid, "resourceVersion": version}
        if given := {name: value for name, value in preconditions.items() if value is not None}:
            options["preconditions"] = given
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return await self.request("DELETE", path, query=query, body=options)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Json | None = None,
        content_type: str | None = None,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> Json:
        """One request, one attempt."""
        limits = aiohttp.ClientTimeout(total=timeout)
        try:
            response = await self._send(method, path, query, body, content_type, accept, limits)
            async with response:
                text = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error, f"{method} {path}") from error
        if response.status >= 400:
            raise from_response(response.status, text, retry_after=_retry_after(response))
        return _decode(text, where=f"{method} {path}")

    async def watch(
        self, path: str, *, query: Query | None = None, timeout: float = 300.0
    ) -> AsyncGenerator[Json, None]:
        """The events of one watch, bookmarks included, until the server ends it (after `timeout` seconds at
        the latest). An ERROR event and a broken connection raise. Close the generator (`contextlib.aclosing`)
        when leaving it early, or its connection lives until the garbage collector finds it.
        """
        query = {"watch": True, "allowWatchBookmarks": True, "timeoutSeconds": int(timeout), **(query or {})}
        limits = aiohttp.ClientTimeout(total=timeout + WATCH_GRACE, sock_connect=WATCH_GRACE)
        try:
            response = await self._send("GET", path, query, None, None, JSON, limits)
            # Not `async with`: leaving it reads the rest of the answer to reuse the connection, and a watch
            # has no end.
            try:
                if response.status >= 400:
                    text = await response.read()
                    raise from_response(response.status, text, retry_after=_retry_after(response))
                while line := await response.content.readline():
                    yield _event(line, where=path)
            finally:
                response.close()
        except (
            aiohttp.ClientError,
            http_exceptions.HttpProcessingError,
            TimeoutError,
            OSError,
        ) as error:
            raise _unreachable(error, f"watch {path}") from error

    async def _list_pages(self, path: str, *, query: Query, accept: str) -> Json:
        page = await self._read(path, query=query, accept=accept)
        items = cast("list[Json]", page.get("items") or [])
        while token := page.get("metadata", {}).get("continue"):
            page = await self._read(path, query={**query, "continue": token}, accept=accept)
            items.extend(page.get("items") or [])
        return {**page, "items": items}

    async def _read(self, path: str, *, query: Query | None, accept: str = JSON) -> Json:
        """A GET that is tried again when the server is busy or briefly gone. Writes are never repeated here:
        only their caller knows whether a second one would do harm.
        """
        for attempt in range(1, READ_ATTEMPTS):
            try:
                return await self.request("GET", path, query=query, accept=accept)
            except (Throttled, Unavailable) as error:
                delay = FIRST_DELAY * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
                await asyncio.sleep(min(max(delay, error.retry_after or 0.0), LONGEST_DELAY))
        return await self.request("GET", path, query=query, accept=accept)

    async def _send(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Json | None,
        content_type: str | None,
        accept: str,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": accept, "Content-Type": content_type or JSON}
        headers["User-Agent"] = FIELD_MANAGER
        # Asking for the key is what makes kubernetes.aio read a service account's token again before it
        # expires.
        authorization = await self._configuration.get_api_key_with_prefix("BearerToken")
        if authorization is not None:
            headers["Authorization"] = authorization
        # Already encoded: paths and queries are quoted where they are made, and must arrive as they are.
        url = URL(f"{self.host}{path}{_encode(query)}", encoded=True)
        answer = await self._rest.request(method, url, headers=headers, body=body, _request_timeout=limits)
        return answer.response


def _managed(query: Query | None) -> Query:
    return {"fieldManager": FIELD_MANAGER, **(query or {})}


def _encode(query: Query | None) -> str:
    if not query:
        return ""
    words = {True: "true", False: "false"}
    return "?" + urlencode({k: words[v] if isinstance(v, bool) else v for k, v in query.items()})


def _event(line: bytes, *, where: str) -> Json:
    event = _decode(line, where=f"watch {where}")
    if event.get("type") == "ERROR":
        status = cast("Json", event.get("object") or {})
        raise from_status(int(status.get("code") or 500), status)
    return event


def _decode(text: bytes, *, where: str) -> Json:
    try:
        value = json.loads(text or b"{}")
    except ValueError as error:
        raise Unavailable(0, "BadAnswer", f"{where}: the answer is not JSON or was cut off") from error
    if not isinstance(value, dict):
        raise Unavailable(0, "BadAnswer", f"{where}: the answer is not a JSON object")
    return cast("Json", value)


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _unreachable(error: Exception, what: str) -> ApiError:
    reason = "Timeout" if isinstance(error, TimeoutError) else "ConnectionFailed"
    return Unavailable(0, reason, f"{what}: {error or type(error).__name__}")
