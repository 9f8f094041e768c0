"""One host on the fast path: whose pod it leads to, for how long HAProxy may send there, and whether it is
used.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from sandpod_crds.names import Phase

from ..addresses import Address
from ..proxy import Runtime
from ..routes import ExposedPort, Key, Route
from .admin import Traffic

# HAProxy counts the bytes of a stream every five seconds: one that has moved within six may be moving now.
SETTLED_SECONDS: Final = 6.0
# A program that has not begun to answer by then may be one that never does.
LONGEST_SILENCE: Final = 300.0
NOTHING: Final = Traffic()


@dataclass(slots=True, eq=False)
class Entry:
    host: str
    key: Key
    uid: str
    port: ExposedPort
    runtime: Runtime
    address: Address
    # When it last moved something
    moved: float
    # Until when HAProxy sends requests there; later than now, or it is not in the map
    until: float = 0.0
    # Nothing new goes there; what is under way goes on.
    shut: bool = False
    # It is not to be reached at all any more.
    revoked: bool = False
    traffic: Traffic = NOTHING
    # Requests whose client left before there was an answer
    abandoned: int = 0
    watching: asyncio.Task[None] | None = None
    # HAProxy has heard that it is over, or another entry has taken its place.
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def look(self, traffic: Traffic, now: float) -> None:
        # HAProxy forgets the counters of a host on which nothing moves, and begins anew.
        if traffic.requests < self.traffic.requests:
            self.abandoned = 0
        if traffic not in (self.traffic, NOTHING):
            self.moved = now
        if not traffic.streams:
            self.abandoned = traffic.requests - traffic.answers
        self.traffic = traffic

    def is_used(self, now: float, *, since: float) -> bool:
        """Whether its sandbox has a reason to stay awake that is newer than `since`."""
        if self.moved > since:
            return True
        unanswered = self.traffic.requests - self.traffic.answers > self.abandoned
        longest = LONGEST_SILENCE if unanswered else SETTLED_SECONDS
        return self.traffic.streams > 0 and now - self.moved < longest

    def is_exposed(self, route: Route) -> bool:
        return not route.deleting and route.uid == self.uid and self.port in route.ports

    def leads_to(self, route: Route) -> bool:
        same_pod = route.ready and route.pod_uid == self.runtime.pod_uid
        return same_pod and not route.paused and route.phase != Phase.DRAINING

    @property
    def server(self) -> str:
        """As HAProxy writes the pod's address and port."""
        return f"{self.address[0]}:{self.address[1]}"

    def line(self, deadline: float) -> str:
        """`deadline` in seconds of the clock on the wall, which HAProxy reads too."""
        namespace, name = self.key
        return f"{self.address[0]}|{self.address[1]}|{deadline * 1000:.0f}|{namespace}|{name}"
