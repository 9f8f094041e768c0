"""The fast path: hosts of previews that HAProxy serves without us. One is opened after a request for it was
answered here, for as long as a lease of its pod holds: what HAProxy knows ends with the lease, whatever
becomes of this process.

While a host moves something its pod's lease is renewed, and with it the host's deadline in HAProxy. One that
moves nothing runs out; its next request comes here and opens it again. What is taken back is closed at once,
and what is under way there is cut. docs/decisions/0013-haproxy-for-previews.md says how they work together.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from ..addresses import Address
from ..leases import Leases
from ..metrics import Metrics
from ..proxy import Runtime
from ..routes import ExposedPort, Key, Route, RouteTable
from ..settings import Settings
from .admin import Admin, Unavailable
from .entry import NOTHING, Entry

log = logging.getLogger(__name__)

# Whoever comes when there are so many is served here.
MOST: Final = 1024
# Shares of a lease: between two looks, and what is left of it when it is renewed
_LOOK: Final = 0.1
_RENEW: Final = 0.2
# Between two attempts to reach HAProxy
_AGAIN_SECONDS: Final = 1.0
_COUNT_SECONDS: Final = 5.0
# In the folder that is shared with HAProxy; its configuration has the same names.
WEB_SOCKET: Final = "web.sock"
_ADMIN_SOCKET: Final = "admin.sock"


class FastPath:
    def __init__(
        self,
        *,
        admin: Admin,
        leases: Leases,
        lease_seconds: float,
        table: RouteTable,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._admin = admin
        self._leases = leases
        self._lease_seconds = lease_seconds
        self._table = table
        self._metrics = metrics
        self._clock = clock
        self._wall = wall
        self._entries: dict[str, Entry] = {}
        self._renewing: dict[str, asyncio.Task[None]] = {}
        # By the pod's UID, when its last renewal began
        self._renewed: dict[str, float] = {}
        self._woken = asyncio.Event()
        # What HAProxy has counted since it was started
        self._totals: dict[tuple[str, ...], int] = {}
        self._counted = 0.0
        self._said = ""

    @property
    def hosts(self) -> int:
        return len(self._entries)

    def served(
        self, *, host: str, key: Key, route: Route, port: ExposedPort, runtime: Runtime, address: Address
    ) -> None:
        """A request for this host has just been answered from there. Costs nothing when the host is open."""
        if port.private:
            return
        if len(self._entries) >= MOST and host not in self._entries:
            self._make_room(key[0])
            return
        if (known := self._entries.get(host)) is not None:
            if known.runtime.pod_uid == runtime.pod_uid and not known.shut:
                return
            self._drop(known)
        entry = Entry(
            host=host,
            key=key,
            uid=route.uid,
            port=port,
            runtime=runtime,
            address=address,
            moved=self._clock(),
        )
        self._entries[host] = entry
        entry.watching = asyncio.create_task(self._watch(entry))
        self._woken.set()

    async def closed(self, key: Key) -> None:
        """Returns when HAProxy leads nowhere any more by what this sandbox has taken back."""
        # Again and again: an answer that comes late may put another entry in the place of one.
        while taken_back := [each for each in self._entries.values() if self._is_taken_back(each, key)]:
            for entry in taken_back:
                entry.revoked = True
            self._woken.set()
            await taken_back[0].over.wait()

    def _is_taken_back(self, entry: Entry, key: Key) -> bool:
        route = self._table.get(key)
        return entry.key == key and (route is None or not entry.is_exposed(route))

    def _make_room(self, namespace: str) -> None:
        """Whoever has the most gives one of them up for a namespace that has fewer. It is gone by the next
        request for this host.
        """
        # Without those that were told already: asked again before they are gone, none gives up another one.
        shares = Counter(entry.key[0] for entry in self._entries.values() if not entry.shut)
        greediest, most = next(iter(shares.most_common(1)), ("", 0))
        if most <= shares[namespace] + 1:
            return
        theirs = (each for each in self._entries.values() if each.key[0] == greediest and not each.shut)
        if idlest := min(theirs, key=lambda each: (each.traffic.streams, each.moved), default=None):
            idlest.shut = True
            self._woken.set()

    async def run(self) -> None:
        begun = False
        try:
            while True:
                try:
                    if not begun:
                        await self._admin.begin()
                        begun = True
                    await self._round()
                except Unavailable as error:
                    # What it knows ends within a lease; what is taken back is cut when it answers again.
                    self._say(f"previews are served by this process alone: {error}")
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    self._say("HAProxy takes previews")
        finally:
            for task in self._renewing.values():
                task.cancel()
            for entry in list(self._entries.values()):
                self._drop(entry)

    async def _round(self) -> None:
        self._woken.clear()
        await self._close()
        if self._entries:
            await self._look()
            await self._extend()
        await self._count()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._lease_seconds * _LOOK if self._entries else _COUNT_SECONDS):
                await self._woken.wait()

    def _say(self, what: str) -> None:
        if what != self._said:
            log.warning("%s", what)
        self._said = what

    async def _close(self) -> None:
        closing = [entry for entry in self._entries.values() if entry.shut or entry.revoked]
        await self._admin.remove(entry.host for entry in closing)
        for entry in closing:
            entry.until = 0.0
        # After the map: whoever is cut must not come in again by it.
        revoked = [entry for entry in closing if entry.revoked]
        if revoked:
            await self._admin.cut({entry.server for entry in revoked})
        for entry in closing:
            # With something under way it is kept, so that this can be cut when the port is taken back.
            if entry in revoked or not entry.traffic.streams:
                self._drop(entry)

    async def _look(self) -> None:
        """Which hosts are in use, and so which leases are renewed."""
        traffic = await self._admin.traffic()
        now = self._clock()
        for entry in self._entries.values():
            entry.look(traffic.get(entry.host, NOTHING), now)
            pod = entry.runtime.pod_uid
            if pod in self._renewing or self._leases.left(pod) > self._lease_seconds * _RENEW:
                continue
            if entry.is_used(now, since=self._renewed.get(pod, 0.0)):
                self._renewed[pod] = now
                task = self._renewing[pod] = asyncio.create_task(self._renew(entry.runtime))
                task.add_done_callback(lambda _, pod=pod: self._renewing.pop(pod, None))

    async def _renew(self, runtime: Runtime) -> None:
        granted = await self._leases.confirm(
            pod_uid=runtime.pod_uid, address=runtime.address, credential=runtime.credential
        )
        if not granted:
            for entry in self._entries.values():
                entry.shut |= entry.runtime.pod_uid == runtime.pod_uid
        self._woken.set()

    async def _extend(self) -> None:
        """HAProxy sends a request to a pod as long as we would: until the end of its lease."""
        now, wall = self._clock(), self._wall()
        lines: dict[str, str] = {}
        for entry in self._entries.values():
            left = self._leases.left(entry.runtime.pod_uid)
            # By less than this two readings of one lease may differ.
            if self._is_open(entry) and now + left > entry.until + 0.005:
                entry.until = now + left
                lines[entry.host] = entry.line(wall + left)
        await self._admin.put(lines)
        over = [
            entry
            for entry in self._entries.values()
            if entry.until <= self._clock()
            and not entry.traffic.streams
            and entry.runtime.pod_uid not in self._renewing
        ]
        await self._admin.remove(entry.host for entry in over)
        for entry in over:
            self._drop(entry)

    def _is_open(self, entry: Entry) -> bool:
        # The table as it is now: whoever watches it for this entry may not have had his turn yet.
        route = self._table.get(entry.key)
        return route is not None and not entry.shut and entry.is_exposed(route) and entry.leads_to(route)

    async def _count(self) -> None:
        if self._clock() - self._counted < _COUNT_SECONDS:
            return
        self._counted = self._clock()
        for code, total in (await self._admin.answered()).items():
            self._count_up("requests_total", total, door="fast", code=code)
        self._count_up("requests_malformed_total", await self._admin.refused())
        self._count_up("audit_lines_lost_total", await self._admin.lost_lines())

    def _count_up(self, name: str, total: int, **labels: str) -> None:
        before = self._totals.get((name, *labels.values()), 0)
        # Less than before: it was started anew.
        self._metrics.count(name, total - before if total >= before else total, **labels)
        self._totals[name, *labels.values()] = total

    async def _watch(self, entry: Entry) -> None:
        with self._table.changes(entry.key) as changed:
            while (route := self._table.get(entry.key)) is not None and entry.is_exposed(route):
                changed.clear()
                if not entry.leads_to(route):
                    entry.shut = True
                    self._woken.set()
                await changed.wait()
        entry.revoked = True
        self._woken.set()

    def _drop(self, entry: Entry) -> None:
        if entry.watching is not None:
            entry.watching.cancel()
        entry.over.set()
        # Another one may have its host by now.
        if self._entries.get(entry.host) is entry:
            del self._entries[entry.host]
        if all(each.runtime.pod_uid != entry.runtime.pod_uid for each in self._entries.values()):
            self._renewed.pop(entry.runtime.pod_uid, None)


def fast_path(*, settings: Settings, leases: Leases, table: RouteTable, metrics: Metrics) -> FastPath | None:
    """None where there is no HAProxy."""
    if not settings.sockets:
        return None
    return FastPath(
        admin=Admin(socket=f"{settings.sockets}/{_ADMIN_SOCKET}", map_file=settings.haproxy_map),
        leases=leases,
        lease_seconds=settings.lease_seconds,
        table=table,
        metrics=metrics,
    )
