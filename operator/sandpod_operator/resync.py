"""Compares the Store with a fresh list every few minutes: objects whose deletion the watch did not tell are
dropped, objects that it did not bring are a reason to distrust it, and every sandbox is looked at once
more.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sandpod_crds.errors import ApiError, NotFound

from .cluster import Cluster
from .kinds import KINDS, Kind
from .metrics import Metrics
from .objects import Json, key_of, uid_of, version_of
from .observations import Key
from .pool.look import concerned
from .store import Store
from .workqueue import WorkQueue

# Not all operators of a fleet at the same moment.
SHORTEST, LONGEST = 300.0, 600.0
# Until the first lists have come through the watches, this often.
FIRST = 0.25
GRACE = 5.0
# Sooner when the watch owes something: the next list shows whether it is late, or the object gone.
DOUBTFUL = 60.0
# After a watch that began anew, which does not tell what was deleted in between; looked for this often.
RELISTED = 10.0
# Keys per second, so that a look at everything is no storm.
PACE = 100.0

log = logging.getLogger(__name__)


class _Object(NamedTuple):
    kind: Kind
    key: Key
    uid: str
    version: int


class Resync:
    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        queue: WorkQueue[Key],
        pool_queue: WorkQueue[Key],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._queue = queue
        self._pool_queue = pool_queue
        self._metrics = metrics
        self._clock = clock
        # Since when the watch owes us something that a list has shown.
        self._missing: dict[_Object, float] = {}
        # What the first list has shown and the watch has yet to bring. Of one list only: on a busy cluster
        # each new one owes something new, and we would never be ready.
        self._first: set[_Object] | None = None
        self._relisted = asyncio.Event()
        # Set when the watches have brought all that the first list has shown.
        self.first_lists = asyncio.Event()

    @property
    def synced(self) -> bool:
        return self.first_lists.is_set()

    async def run(self) -> None:
        again, owed = self._clock(), 0
        while not self._first_has_come():
            if self._first is None or self._clock() >= again:
                await self._try_compare()
                again = self._clock() + GRACE
            elif len(self._first) != owed:
                # It comes, and another list would take the time that it needs. Once nothing comes any more:
                # what has been deleted before the watch began, only another list can tell.
                again = self._clock() + GRACE
            owed = len(self._first or ())
            await asyncio.sleep(FIRST)
        while True:
            pause = random.uniform(SHORTEST, LONGEST)  # noqa: S311 - no secret
            await self._pause(DOUBTFUL if self.behind() else pause)
            phantoms = await self._try_compare()
            # The watch may be about to say it.
            await asyncio.sleep(GRACE)
            self.drop(phantoms)
            await self._enqueue_all()

    def relisted(self) -> None:
        """A watch has brought an object out of a new list of its own."""
        if self.synced:
            self._relisted.set()

    async def _pause(self, seconds: float) -> None:
        until = self._clock() + seconds
        while self._clock() < until:
            await asyncio.sleep(RELISTED)
            if self._relisted.is_set() or await self._is_one_gone():
                break
        self._relisted.clear()

    async def _is_one_gone(self) -> bool:
        """Of each kind, the first that we know. A new list of a watch tells of itself by what is in it, and
        one that is empty does not: the last object of its kind would live on here for minutes.
        """
        for kind in KINDS:
            known = self._store.cache(kind).first()
            if known is not None and not await self._is_there(kind, known):
                return True
        return False

    async def _is_there(self, kind: Kind, known: Json) -> bool:
        # One object by its name costs the same in any cluster. A list of one is a search through all others,
        # when its selector finds nothing.
        key = key_of(known)
        try:
            found = await self._cluster.get(kind.path(key.namespace or None, key.name))
        except NotFound:
            pass
        except ApiError as error:
            # Nobody knows.
            self._failed(error)
            return True
        else:
            if uid_of(found) == uid_of(known):
                return True
        # Unless the watch has said so meanwhile.
        now = self._store.cache(kind).get(key)
        return now is None or uid_of(now) != uid_of(known)

    def behind(self) -> float:
        """For how many seconds the watch has owed us something."""
        for missing in [m for m in self._missing if self._arrived(m)]:
            del self._missing[missing]
        return self._clock() - min(self._missing.values()) if self._missing else 0.0

    async def compare(self) -> list[_Object]:
        """Returns what is known and not there any more, as of the version of the list."""
        phantoms: list[_Object] = []
        listed: set[_Object] = set()
        for kind in KINDS:
            query = {"labelSelector": kind.selector} if kind.selector is not None else None
            deleted = self._store.cache(kind).deletions()
            answer = await self._cluster.list(kind.path(), query=query, metadata_only=True)
            objects = [_Object(kind, key_of(o), uid_of(o), version_of(o)) for o in answer["items"]]
            phantoms += self._phantoms(kind, alive={o.uid for o in objects}, version=version_of(answer))
            await self._take_back([each for each in objects if each.uid in deleted])
            listed.update(objects)
        now = self._clock()
        owed = {each for each in listed if not self._arrived(each)}
        # What was owed before and is not listed any more is gone; what is owed still, since then.
        self._missing = {each: self._missing.get(each, now) for each in owed}
        alive = {each.uid for each in listed}
        first = owed if self._first is None else self._first
        self._first = {each for each in first if each.uid in alive}
        self._first_has_come()
        return phantoms

    async def _take_back(self, alive: list[_Object]) -> None:
        """What we believed deleted before the list was made. The watch has brought it long ago."""
        for kind, key, uid, _ in alive:
            try:
                found = await self._cluster.get(kind.path(key.namespace or None, key.name))
            except NotFound:
                continue
            if uid_of(found) == uid and self._store.cache(kind).observe(found):
                log.warning("%s %s is there and we believed it gone", kind.plural, key)
                self._look_at_all_concerned(kind, found)

    def drop(self, phantoms: list[_Object]) -> None:
        for kind, key, uid, version in phantoms:
            known = self._store.cache(kind).get(key)
            # What is newer by now was there after the list.
            if known is None or uid_of(known) != uid or version_of(known) > version:
                continue
            log.warning("%s %s is gone and the watch did not say so", kind.plural, key)
            self._store.deleted(kind, key, uid=uid)
            self._look_at_all_concerned(kind, known)

    def _look_at_all_concerned(self, kind: Kind, obj: Json) -> None:
        for sandbox in self._store.concerned(kind, obj):
            self._queue.add(sandbox)
        for pool in concerned(kind, obj, self._store):
            self._pool_queue.add(pool)

    async def _try_compare(self) -> list[_Object]:
        try:
            return await self.compare()
        except ApiError as error:
            self._failed(error)
            log.warning("could not list: %s", error)
            # The watch began anew because the API server was in trouble; what it did not tell must not wait
            # for minutes because that trouble goes on.
            self.relisted()
            return []

    def _failed(self, error: ApiError) -> None:
        self._metrics.errors.add(part="resync", reason=type(error).__name__)

    def _first_has_come(self) -> bool:
        if not self.synced and self._first is not None:
            self._first = {each for each in self._first if not self._arrived(each)}
            if not self._first:
                self.first_lists.set()
        return self.synced

    def _phantoms(self, kind: Kind, *, alive: set[str], version: int) -> Iterator[_Object]:
        cache = self._store.cache(kind)
        for key in cache:
            known = cache.get(key)
            # What is newer than the list was not there when it was made.
            if known is not None and uid_of(known) not in alive and version_of(known) <= version:
                yield _Object(kind, key, uid_of(known), version)

    def _arrived(self, missing: _Object) -> bool:
        cache = self._store.cache(missing.kind)
        known = cache.get(missing.key)
        # A later object of the same name has come after this one's deletion.
        return cache.knows_deleted(missing.uid) or (
            known is not None and version_of(known) >= missing.version
        )

    async def _enqueue_all(self) -> None:
        for key in self._store.pools:
            self._pool_queue.add(key)
        for key in self._store.sandboxes:
            self._queue.add(key)
            await asyncio.sleep(1 / PACE)
