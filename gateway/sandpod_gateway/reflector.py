"""Keeps the route table as the cluster is: list all Sandboxes, then watch from there. A list replaces the
whole table, so that no sandbox outlives a deletion that the watch has missed.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn, cast

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Gone
from sandpod_crds.kube import Kube

from .routes import Key, Route, RouteTable, key_of

Json = dict[str, Any]

log = logging.getLogger(__name__)

PAGE: Final = 500
# That a server's node has died the kernel notices. One that is there and tells nothing is found out when the
# watch should have ended by itself.
WATCH_SECONDS: Final = 120.0
FIRST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 15.0
# A watch that ends sooner and has told nothing was none: a proxy in between, or a server that is going.
SHORTEST_WATCH: Final = 1.0


class Reflector:
    def __init__(self, *, kube: Kube, table: RouteTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._table = table
        self._clock = clock
        self._heard_at: float | None = None
        self._failures = 0
        # How far the table is; None is a list from scratch. Kept here so that a watch that breaks off does
        # not lose it: its events would be played again, and old ones would put back routes that are gone.
        self._version: str | None = None
        self.synced = asyncio.Event()

    def age(self) -> float | None:
        """Seconds since the API server last told something; None before the first list."""
        return None if self._heard_at is None else self._clock() - self._heard_at

    async def run(self) -> NoReturn:
        while True:
            try:
                if self._version is None:
                    self._version = await self._list()
                if not await self._watch(self._version):
                    await self._back_off()
            except Gone:
                log.info("the watch is too old to go on: listing again")
                self._version = None
                # A server that calls fresh lists old must not be asked in a tight loop.
                await self._back_off()
            except ApiError as error:
                log.warning("watching sandboxes: %s; trying again", error)
                await self._back_off()

    async def _list(self) -> str:
        routes: dict[Key, Route] = {}
        query: dict[str, str | int | bool] = {"limit": PAGE}
        while True:
            # Page by page, keeping only the routes: all objects of a big cluster at once are hundreds of
            # megabytes.
            page = await self._kube.get(paths.sandboxes(), query=query)
            for sandbox in cast("list[Json]", page.get("items") or []):
                routes[key_of(sandbox)] = Route.from_object(sandbox)
            token = page.get("metadata", {}).get("continue")
            if not token:
                break
            query = {"limit": PAGE, "continue": token}
        self._table.replace(routes)
        self._heard()
        self.synced.set()
        log.info("listed %d sandboxes", len(routes))
        return str(page.get("metadata", {}).get("resourceVersion") or "")

    async def _watch(self, version: str) -> bool:
        """Follows the events of one watch to its end; returns whether it was one, see SHORTEST_WATCH."""
        started, told = self._clock(), False
        query = {"resourceVersion": version}
        async with contextlib.aclosing(
            self._kube.watch(paths.sandboxes(), query=query, timeout=WATCH_SECONDS)
        ) as events:
            async for event in events:
                self._heard()
                self._version = self._apply(event) or self._version
                told, self._failures = True, 0
        self._heard()
        if self._clock() - started < SHORTEST_WATCH:
            return told
        self._failures = 0
        return True

    def _apply(self, event: Json) -> str | None:
        sandbox: Json = event.get("object") or {}
        match event.get("type"):
            case "ADDED" | "MODIFIED":
                self._table.put(key_of(sandbox), Route.from_object(sandbox))
            case "DELETED":
                self._table.remove(key_of(sandbox))
            case _:
                # A bookmark brings a newer version and nothing else.
                pass
        return sandbox.get("metadata", {}).get("resourceVersion")

    def _heard(self) -> None:
        self._heard_at = self._clock()

    async def _back_off(self) -> None:
        delay = min(FIRST_DELAY * 2**self._failures, LONGEST_DELAY)
        self._failures = min(self._failures + 1, 10)
        # Jitter: all replicas lose the API server in the same moment.
        await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - jitter is no secret
