"""Sandboxes themselves, for whoever has a bearer token and no kubeconfig: create, get, list, watch, change,
delete. The API server does it, with the caller's own token, so that its RBAC, its admission and its audit log
see the caller and nobody else. Only Sandboxes can be reached, and the log of a sandbox's pod.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, cast
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import hdrs, web
from sandpod_crds import paths
from sandpod_crds.names import SANDBOX_CONTAINER

from .api_server import ApiServer
from .audit import Exchange
from .bodies import read_body
from .errors import BadRequest, BrokenOff, NotAllowed, NotFound, NotReady
from .rates import Places

Json = dict[str, Any]

# etcd takes 1.5 MiB, and what is here of a body is in memory.
MAX_BODY: Final = 1024 * 1024
# A Sandbox that is looked at for the name of its pod
_MAX_OBJECT: Final = 4 * 1024 * 1024
_ON_ALL: Final = {"GET": "list", "POST": "create"}
_ON_ONE: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_LONGEST_NAME: Final = 253
_POD: Final = re.compile(r"[a-z0-9][-a-z0-9.]{0,251}[a-z0-9]|[a-z0-9]")

_TO_SERVER: Final = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE, hdrs.USER_AGENT)
_TO_CLIENT: Final = (
    hdrs.CACHE_CONTROL,
    hdrs.CONTENT_ENCODING,
    hdrs.CONTENT_TYPE,
    hdrs.ETAG,
    hdrs.RETRY_AFTER,
    hdrs.VARY,
    "Audit-Id",
    "Warning",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the door has found out. `name` is empty for all sandboxes of the namespace."""

    namespace: str
    name: str
    query: str
    token: str


class Objects:
    """`places` are each user's requests under way: a watch is one for as long as it lasts."""

    def __init__(self, *, server: ApiServer, places: Places) -> None:
        self._server = server
        self._places = places

    async def serve(self, request: web.BaseRequest, asked: Asked, exchange: Exchange) -> web.StreamResponse:
        verbs = _ON_ONE if asked.name else _ON_ALL
        if request.method not in verbs:
            raise NotAllowed(
                f"{request.method} is not for {'a sandbox' if asked.name else 'all sandboxes'}: "
                f"{', '.join(verbs)} are"
            )
        watches = request.method == "GET" and _is_set(asked.query, "watch")
        exchange.verb = "watch" if watches else verbs[request.method]
        target = _target(paths.sandboxes(asked.namespace, asked.name or None), asked.query)
        with self._places.enter(exchange.user):
            body = None if request.method == "GET" else await read_body(request, most=MAX_BODY)
            exchange.sandbox = exchange.sandbox or _name_in(body)
            headers = _to_server(request, asked.token, exchange)
            answer = await self._send(request.method, target, headers, body=body, endless=watches)
            return await _pass_on(request, answer, exchange)

    async def log(self, request: web.BaseRequest, asked: Asked, exchange: Exchange) -> web.StreamResponse:
        """What the sandbox's pod has written; the API server decides who may read that."""
        exchange.verb, exchange.subresource = "get", "log"
        if request.method != "GET":
            raise NotAllowed("a log is read by GET")
        headers = _to_server(request, asked.token, exchange)
        with self._places.enter(exchange.user):
            sandbox = paths.sandboxes(asked.namespace, asked.name)
            # As it is, to be read here.
            plain = {**headers, hdrs.ACCEPT: "application/json", hdrs.ACCEPT_ENCODING: "identity"}
            found = await self._send("GET", sandbox, plain, body=None, endless=False)
            if found.status != 200:
                return await _pass_on(request, found, exchange)
            pod = await _pod_of(found)
            if not pod:
                raise NotFound(
                    f'sandbox "{asked.name}" has no pod now, and what its last one wrote went with it',
                    name=asked.name,
                )
            target = _target(paths.pods(asked.namespace, pod, "log"), _of_sandbox(asked.query))
            answer = await self._send(
                "GET", target, headers, body=None, endless=_is_set(asked.query, "follow")
            )
            return await _pass_on(request, answer, exchange)

    async def _send(
        self, method: str, target: str, headers: Mapping[str, str], *, body: bytes | None, endless: bool
    ) -> aiohttp.ClientResponse:
        try:
            return await self._server.send(method, target, headers=headers, body=body, endless=endless)
        except aiohttp.ClientConnectorError as error:
            raise NotReady("the API server does not accept connections; nothing was done") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if method == "GET":
                raise NotReady("the API server did not answer") from error
            raise BrokenOff(
                "the API server did not answer: what you asked for may have been done, or not"
            ) from error


async def _pass_on(
    request: web.BaseRequest, answer: aiohttp.ClientResponse, exchange: Exchange
) -> web.StreamResponse:
    """The answer as it is and as it comes."""
    try:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for name in _TO_CLIENT:
            for value in answer.headers.getall(name, ()):
                response.headers.add(name, value)
        if hdrs.CONTENT_TYPE not in answer.headers:
            response.headers[hdrs.CONTENT_TYPE] = "application/octet-stream"
        if (length := answer.headers.get(hdrs.CONTENT_LENGTH, "")).isdigit():
            response.content_length = int(length)
        if not exchange.keep_alive:
            response.force_close()
        # By which the API server's own audit log knows it
        exchange.audit_id = answer.headers.get("Audit-Id", "")[:64]
        exchange.status, exchange.answered = answer.status, perf_counter()
        await response.prepare(request)
        try:
            async for piece in answer.content.iter_any():
                exchange.moved += len(piece)
                await response.write(piece)
            await response.write_eof()
        except (aiohttp.ClientError, TimeoutError, OSError):
            # A connection that ends before its time is the only way left to say that the answer is not whole.
            exchange.reason = "the API server broke off, or the client hung up"
            if request.transport is not None:
                request.transport.abort()
        return response
    finally:
        # Not released: the rest of a watch that nobody reads has no end. Of an answer that was read, the
        # connection has gone back before.
        answer.close()


async def _pod_of(answer: aiohttp.ClientResponse) -> str:
    try:
        data = await answer.content.read(_MAX_OBJECT)
        while not answer.content.at_eof() and len(data) < _MAX_OBJECT:
            data += await answer.content.read(_MAX_OBJECT)
        value = _object(json.loads(data))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError) as error:
        raise NotReady("the API server's answer about the sandbox broke off") from error
    finally:
        answer.close()
    name = _object(value.get("status")).get("podName")
    # Whoever may write a status may put anything there, and it becomes part of a path.
    return name if isinstance(name, str) and _POD.fullmatch(name) else ""


def _to_server(request: web.BaseRequest, token: str, exchange: Exchange) -> dict[str, str]:
    headers = {name: value for name in _TO_SERVER if (value := request.headers.get(name)) is not None}
    return {
        **headers,
        hdrs.AUTHORIZATION: f"Bearer {token}",
        # For its audit log: it believes nobody for anything else.
        "X-Forwarded-For": exchange.source,
        "traceparent": exchange.traceparent,
    }


def _target(path: str, query: str) -> str:
    if not query:
        return path
    if not query.isascii() or not query.isprintable() or " " in query or "#" in query:
        raise BadRequest("the query holds characters that a URL must percent-encode")
    return f"{path}?{query}"


def _of_sandbox(query: str) -> str:
    """The container that people mean, when they do not say which."""
    if any(key == "container" for key, _ in parse_qsl(query, keep_blank_values=True)):
        return query
    return "&".join(part for part in (query, f"container={SANDBOX_CONTAINER}") if part)


def _is_set(query: str, name: str) -> bool:
    """As Kubernetes reads a flag: the first value counts, and an empty one is a yes."""
    values = [value for key, value in parse_qsl(query, keep_blank_values=True) if key == name]
    return bool(values) and values[0].lower() not in ("0", "false")


def _name_in(body: bytes | None) -> str:
    """For the audit log, when it is JSON; else the API server's own log has it."""
    try:
        value: object = json.loads(body or b"null")
    except (ValueError, RecursionError):
        return ""
    name = _object(_object(value).get("metadata")).get("name")
    return name[:_LONGEST_NAME] if isinstance(name, str) else ""


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
