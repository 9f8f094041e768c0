"""The sub-resource `ports` of a sandbox: list, expose, take back, rotate. Whoever may do that here need not
be able to change the sandbox otherwise: what is written is spec.ports, and which tokens are used up.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from aiohttp import web
from sandpod_crds import errors as api
from sandpod_crds import keys, paths
from sandpod_crds.kube import Kube
from sandpod_crds.names import RUN_API_VERSION
from sandpod_crds.previews import PreviewAddress, Site

from . import ports
from .audit import Exchange
from .bodies import read_object
from .collisions import until_it_fits
from .door import document, success
from .errors import Conflict, Denied, Invalid, NotAllowed, NotFound, NotReady, unknown_sandbox
from .fastpath.path import FastPath
from .routes import Route, RouteTable, token_version

Json = dict[str, Any]
Key = tuple[str, str]

log = logging.getLogger(__name__)

MAX_BODY: Final = 4096
TIMEOUT: Final = 5.0
# How long an answer waits until this replica has seen what it has written.
SEEN_SECONDS: Final = 1.0

_PORT: Final = re.compile(r"/(?P<port>[1-9][0-9]{0,4})(?P<rotate>/rotate)?")


class PortsApi:
    """`site` is None where there are no previews: then ports have no URLs."""

    def __init__(
        self, *, kube: Kube, table: RouteTable, key: bytes, site: Site | None, fast: FastPath | None
    ) -> None:
        self._kube = kube
        self._table = table
        self._key = key
        self._site = site
        self._fast = fast

    async def serve(
        self, request: web.BaseRequest, key: Key, rest: str, exchange: Exchange
    ) -> web.StreamResponse:
        """For somebody who may. `rest` is what follows `ports`."""
        if not rest:
            return await self._all(request, key, exchange)
        if (found := _PORT.fullmatch(rest)) is None:
            raise NotFound(
                "there is nothing at this path: ports are ports, ports/PORT, ports/PORT/rotate and "
                "ports/PORT/login"
            )
        port = int(found["port"])
        if found["rotate"]:
            _only(request, "POST")
            after = await self._change(key, lambda sandbox: ports.rotate(sandbox, port))
            return await self._told(key, after, port, exchange)
        if request.method == "GET":
            return self._one(await self.read(key), port, exchange)
        _only(request, "GET", "DELETE")
        after = await self._change(key, lambda sandbox: ports.unexpose(sandbox, port))
        await self._until_seen(key, after)
        exchange.answered = perf_counter()
        return document(success(f"port {port} is not exposed any more, and its URL opens nothing"))

    async def _all(self, request: web.BaseRequest, key: Key, exchange: Exchange) -> web.StreamResponse:
        if request.method == "GET":
            sandbox = await self.read(key)
            exchange.answered = perf_counter()
            items = [self._shown(sandbox, entry) for entry in ports.listed(sandbox)]
            return document({"kind": "SandboxPortList", "apiVersion": RUN_API_VERSION, "items": items})
        _only(request, "GET", "POST")
        wish = ports.Wish.from_object(await read_object(request, most=MAX_BODY))
        status = 200

        def expose(sandbox: Json) -> Json | None:
            nonlocal status
            status = 200 if any(entry["port"] == wish.port for entry in ports.listed(sandbox)) else 201
            return ports.expose(sandbox, wish)

        after = await self._change(key, expose)
        return await self._told(key, after, wish.port, exchange, status=status)

    async def _told(
        self, key: Key, sandbox: Json, port: int, exchange: Exchange, *, status: int = 200
    ) -> web.StreamResponse:
        await self._until_seen(key, sandbox)
        return self._one(sandbox, port, exchange, status=status)

    def _one(self, sandbox: Json, port: int, exchange: Exchange, *, status: int = 200) -> web.StreamResponse:
        exchange.answered = perf_counter()
        for entry in ports.listed(sandbox):
            if entry["port"] == port:
                shown = {"kind": "SandboxPort", "apiVersion": RUN_API_VERSION, **self._shown(sandbox, entry)}
                return document(shown, status=status)
        raise NotFound(f"port {port} is not exposed")

    def _shown(self, sandbox: Json, entry: Json) -> Json:
        if self._site is None:
            return entry
        metadata = sandbox["metadata"]
        token = keys.preview_token(
            key=self._key,
            sandbox_uid=metadata["uid"],
            port=entry["port"],
            version=token_version(entry),
        )
        address = PreviewAddress.of(port=entry["port"], sandbox=metadata["name"], token=token)
        return {**entry, "url": self._site.url(address)}

    async def _change(self, key: Key, change: Callable[[Json], Json | None]) -> Json:
        """The sandbox after it. Somebody else's change in between makes it begin anew."""

        async def attempt() -> Json:
            sandbox = await self.read(key)
            patch = change(sandbox)
            return sandbox if patch is None else await self._write(key, patch)

        try:
            return await until_it_fits(attempt)
        except api.Conflict as error:
            raise Conflict(
                f'sandbox "{key[1]}" is being changed by others all the time, and nothing was done: '
                "try again",
                name=key[1],
            ) from error

    async def read(self, key: Key) -> Json:
        namespace, name = key
        try:
            # Not from the table, which may lag: two changes in a row have to see each other.
            return await self._kube.request("GET", paths.sandboxes(namespace, name), timeout=TIMEOUT)
        except api.NotFound as error:
            raise unknown_sandbox(namespace=namespace, name=name) from error
        except api.ApiError as error:
            log.warning("reading %s/%s for its ports: %s", namespace, name, error)
            raise NotReady("the API server did not say what the sandbox is like", name=name) from error

    async def _write(self, key: Key, patch: Json) -> Json:
        namespace, name = key
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._kube.patch(paths.sandboxes(namespace, name), patch)
        except api.Conflict:
            raise
        except api.NotFound as error:
            raise unknown_sandbox(namespace=namespace, name=name) from error
        except api.Invalid as error:
            raise Invalid(error.message, name=name) from error
        except api.Forbidden as error:
            # Not RBAC: some admission, which has a reason that its author meant for people.
            raise Denied(error.message, name=name) from error
        except (api.ApiError, TimeoutError) as error:
            log.warning("writing the ports of %s/%s: %s", namespace, name, error)
            raise NotReady(
                "the API server did not confirm the change: it may have been made, and making it again does "
                "no harm",
                name=name,
            ) from error

    async def _until_seen(self, key: Key, sandbox: Json) -> None:
        """Whoever was told of a change finds it here with the next request."""
        wanted = Route.from_object(sandbox)

        def seen() -> bool:
            now = self._table.get(key)
            return now is None or now.uid != wanted.uid or set(now.ports) == set(wanted.ports)

        with self._table.changes(key) as changed, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SEEN_SECONDS):
                while not seen():
                    changed.clear()
                    await changed.wait()
                if self._fast is not None:
                    await self._fast.closed(key)


def _only(request: web.BaseRequest, *methods: str) -> None:
    if request.method not in methods:
        raise NotAllowed(f"{request.method} is not for this path: {', '.join(methods)}")
