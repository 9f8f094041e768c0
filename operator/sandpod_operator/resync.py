"""Compares the Store with a fresh list every few minutes: objects whose deletion the watch did not tell are
dropped, objects that it did not bring are a reason to distrust it, and every sandbox is looked at once
more.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import NamedTuple

from sandpod_crds import paths
from sandpod_crds.errors import ApiError
from sandpod_crds.names import SANDBOX_POD_SELECTOR

from .cluster import Cluster
from .objects import key_of, uid_of, version_of
from .observations import Key
from .store import Cache, Store
from .workqueue import WorkQueue

# Not all operators of a fleet at the same moment.
SHORTEST, LONGEST = 300.0, 600.0
# Until the first lists have come through the watches, this often.
FIRST = 0.25
# A watch may be this late before it counts as dead; kopf gives up a silent one after 70 s by itself.
PATIENCE = 120.0
# Keys per second, so that a look at everything is no storm.
PACE = 100.0

log = logging.getLogger(__name__)


class _Missing(NamedTuple):
    """The watch owes us this object, in this version or a later one."""

    kind: str
    key: Key
    uid: str
    version: int


class Resync:
    def __init__(
        self, *, cluster: Cluster, store: Store, queue: WorkQueue[Key], clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._queue = queue
        self._clock = clock
        # Since when the watch owes us something that a list has shown.
        self._missing: dict[_Missing, float] = {}
        self.synced = False

    async def run(self) -> None:
        while not self.synced:
            await self._try_compare()
            await asyncio.sleep(FIRST)
        while True:
            await asyncio.sleep(random.uniform(SHORTEST, LONGEST))  # noqa: S311 - no secret
            await self._try_compare()
            await self._enqueue_all()

    def behind(self) -> float:
        """For how many seconds the watch has owed us something."""
        for missing in [m for m in self._missing if self._arrived(m)]:
            del self._missing[missing]
        return self._clock() - min(self._missing.values()) if self._missing else 0.0

    async def compare(self) -> None:
        listed: set[_Missing] = set()
        for kind, path, query in (
            ("sandboxes", paths.sandboxes(), None),
            ("pods", paths.pods(), {"labelSelector": SANDBOX_POD_SELECTOR}),
        ):
            answer = await self._cluster.list(path, query=query, metadata_only=True)
            objects = [_Missing(kind, key_of(o), uid_of(o), version_of(o)) for o in answer["items"]]
            self._drop_phantoms(kind, listed=objects, version=version_of(answer))
            listed.update(objects)
        now = self._clock()
        owed = {each for each in listed if not self._arrived(each)}
        # What was owed before and is not listed any more is gone; what is owed still, since then.
        self._missing = {each: self._missing.get(each, now) for each in owed}
        self.synced = self.synced or not owed

    async def _try_compare(self) -> None:
        try:
            await self.compare()
        except ApiError as error:
            log.warning("could not list: %s", error)

    def _arrived(self, missing: _Missing) -> bool:
        known = self._cache(missing.kind).get(missing.key)
        # A later object of the same name has come after this one's deletion.
        return known is not None and version_of(known) >= missing.version

    def _drop_phantoms(self, kind: str, *, listed: list[_Missing], version: int) -> None:
        alive = {each.uid for each in listed}
        cache = self._cache(kind)
        for key in cache:
            known = cache.get(key)
            # What is newer than the list was not there when it was made.
            if known is None or uid_of(known) in alive or version_of(known) > version:
                continue
            log.warning("%s %s is gone and the watch did not say so", kind, key)
            if kind == "pods":
                self._store.pod_deleted(key, uid=uid_of(known))
            else:
                self._store.sandbox_deleted(key, uid=uid_of(known))
            self._queue.add(key)

    async def _enqueue_all(self) -> None:
        for key in self._store.sandboxes:
            self._queue.add(key)
            await asyncio.sleep(1 / PACE)

    def _cache(self, kind: str) -> Cache:
        return self._store.pods if kind == "pods" else self._store.sandboxes
