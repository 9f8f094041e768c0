"""Finds the nodes that have been cordoned for so long that their drain waits for no sandbox any more. Only
cordoned nodes are asked for: to watch all of a large cluster's would cost more than the rest together.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sandpod_crds.errors import ApiError

from .cluster import Cluster
from .kinds import POD
from .metrics import Metrics
from .objects import Json, entries, section
from .observations import Key
from .store import Store
from .times import parse_time
from .workqueue import WorkQueue

NODES: Final = "/api/v1/nodes"
CORDONED: Final = {"fieldSelector": "spec.unschedulable=true"}
# Kubernetes puts it on a node that is cordoned, and says when.
TAINT: Final = "node.kubernetes.io/unschedulable"
PAUSE = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cordon:
    # When Kubernetes says that it began, as far as it does.
    added: datetime | None
    # The same by our own clock
    since: float


class Drains:
    """The clock on the wall says only for how long a node was cordoned before this was looked at for the
    first time: put forward by an hour, it would release all drains at once.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        queue: WorkQueue[Key],
        patience: timedelta,
        metrics: Metrics,
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._queue = queue
        self._patience = patience
        self._metrics = metrics
        self._now = now
        self._clock = clock
        self._cordons: dict[str, Cordon] = {}
        self._looked_at = -math.inf

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except ApiError as error:
                # What was found before holds until a list says otherwise.
                self._metrics.errors.add(part="drains", reason=type(error).__name__)
                log.warning("could not list the cordoned nodes: %s", error)
            await asyncio.sleep(PAUSE)

    async def look(self) -> None:
        nodes = (await self._cluster.list(NODES, query=CORDONED))["items"]
        now = self._clock()
        self._cordons = {_name(node): self._cordon(node, now=now) for node in nodes}
        self._looked_at = now
        patience = self._patience.total_seconds()
        released = frozenset(name for name, each in self._cordons.items() if now - each.since >= patience)
        changed = released ^ self._store.released_nodes
        self._store.released_nodes = released
        for name in sorted(changed):
            waits = "not any more" if name in released else "again"
            log.info("a drain of the node %s waits for its sandboxes %s", name, waits)
        self._look_at_the_sandboxes_on(changed)

    def _cordon(self, node: Json, *, now: float) -> Cordon:
        known, added = self._cordons.get(_name(node)), _cordoned_at(node)
        if known is not None and (added is None or known.added in (None, added)):
            return Cordon(added=added or known.added, since=known.since)
        # It was not, or not by this cordon, when we last looked.
        before = (self._now() - added).total_seconds() if added is not None else 0.0
        return Cordon(added=added, since=now - min(max(before, 0.0), now - self._looked_at))

    def _look_at_the_sandboxes_on(self, nodes: frozenset[str]) -> None:
        if not nodes:
            return
        for key in self._store.pods:
            pod = self._store.pods.get(key)
            if pod is not None and section(pod, "spec").get("nodeName") in nodes:
                for sandbox in self._store.concerned(POD, pod):
                    self._queue.add(sandbox)


def _name(node: Json) -> str:
    return node["metadata"]["name"]


def _cordoned_at(node: Json) -> datetime | None:
    for taint in entries(section(node, "spec"), "taints"):
        if taint.get("key") == TAINT and taint.get("timeAdded"):
            return parse_time(taint["timeAdded"])
    return None
