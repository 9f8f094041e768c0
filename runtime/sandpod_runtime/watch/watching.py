"""The watches that are there: equal requests share one, subscribers are told of its changes, the last one to
leave ends it, unless a poll has asked for it lately.
"""

import asyncio
import logging
import posixpath
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

from sandpod_runtime.clock import timestamp
from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.errors import Fault
from sandpod_runtime.paths import shown
from sandpod_runtime.watch.inotify import LimitError
from sandpod_runtime.watch.patterns import Filter
from sandpod_runtime.watch.pending import MOST, Change, Kind, Pending
from sandpod_runtime.watch.tree import EndedError, LostError, Places, Tree

MOST_WATCHES = 32
MOST_DIRECTORIES = 32_768
# Of the disk's threads, these at most look through directories.
_MOST_AT_WORK = 3
RETAINED_SECONDS = 600.0
# Between two slices of a large batch the subscribers get their turn, so that a quick client misses nothing.
_SLICE = MOST // 2

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """What is watched. Equal ones share a watch."""

    path: str
    recursive: bool
    include: frozenset[str]
    exclude: frozenset[str]
    kinds: frozenset[Kind]


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    reason: str
    failed: bool


class Subscriber:
    """Changes for one client, which reads them when it can."""

    def __init__(self) -> None:
        self.pending = Pending()
        self.end: End | None = None
        self.told = asyncio.Event()
        # As soon as there is room for one slice only, or nothing more will come.
        self.urgent = asyncio.Event()

    def add(self, changes: list[Change], *, at: str) -> None:
        for change in changes:
            self.pending.add(change, at=at)
        self.told.set()
        if self.pending.is_half_full:
            self.urgent.set()

    def finish(self, end: End) -> None:
        self.end = end
        self.told.set()
        self.urgent.set()

    def take(self) -> list[tuple[Change, str]]:
        if self.end is None:
            self.told.clear()
            self.urgent.clear()
        return self.pending.take()


class Watch:
    """One tree that is watched, from its first look through the directories to its end."""

    def __init__(self, *, name: str, tree: Tree, disk: Disk, at_work: asyncio.Semaphore) -> None:
        self.id = name
        self.changes = 0
        self.holders = 0
        # Whether anybody polls it, until when it is kept for that, and what ends it then.
        self.polled = False
        self.kept_until = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.subscribers: set[Subscriber] = set()
        self.end: End | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A failure that nobody has waited for is no news.
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self._tree = tree
        self._disk = disk
        self._at_work = at_work
        self._arrived = asyncio.Event()
        self._behind: list[asyncio.Future[None]] = []

    async def live(self) -> None:
        """The only one that works on the tree: also a client that leaves cannot interrupt it in that."""
        try:
            async with self._at_work:
                await self._disk.run(self._tree.open)
        except Exception as error:
            self.ready.set_exception(error)
            return
        self.ready.set_result(None)
        try:
            while self.end is None and not self._tree.stopped:
                await self._arrival()
                behind, self._behind = self._behind, []
                try:
                    await self._advance()
                finally:
                    _release(behind)
        finally:
            _release(self._behind)
            self._tree.close()

    async def catch_up(self) -> None:
        """Afterwards everything that happened before the call is counted."""
        if self.end is None and not self._tree.stopped:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._behind.append(done)
            self._arrived.set()
            await done

    def stop(self) -> None:
        self._tree.stopped = True
        self._arrived.set()

    async def _advance(self) -> None:
        end = None
        try:
            async with self._at_work:
                await self._disk.run(self._tree.advance)
        except EndedError as error:
            end = End(reason=str(error), failed=False)
        except (LostError, LimitError, OSError) as error:
            end = End(reason=f"changes were lost: {error}", failed=True)
        await self._tell(self._tree.take())
        if end is not None:
            self.finish(end)

    async def _tell(self, changes: list[Change]) -> None:
        self.changes += len(changes)
        at = timestamp()
        for begin in range(0, len(changes), _SLICE):
            for subscriber in self.subscribers:
                subscriber.add(changes[begin : begin + _SLICE], at=at)
            await asyncio.sleep(0)

    def finish(self, end: End) -> None:
        logger.info("a watch ended", extra={"watch": self.id, "reason": end.reason})
        self.end = end
        self._arrived.set()
        for subscriber in self.subscribers:
            subscriber.finish(end)

    async def _arrival(self) -> None:
        """The descriptor is looked at only while nobody reads it, or the loop would turn without end."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._tree.descriptor, self._arrived.set)
        try:
            await self._arrived.wait()
            self._arrived.clear()
        finally:
            loop.remove_reader(self._tree.descriptor)


class Watches:
    def __init__(self, *, disk: Disk, workspace: str, apart: str | None) -> None:
        """`apart` is the runtime's own directory: what it writes there is no change of the user's files."""
        self._disk = disk
        self._apart = None if apart is None else posixpath.normpath(apart)
        self._workspace = posixpath.normpath(workspace)
        self._places = Places(MOST_DIRECTORIES)
        self._at_work = asyncio.Semaphore(_MOST_AT_WORK)
        self._numbers = count(1)
        self._watches: dict[Spec, Watch] = {}
        self._lives: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def held(self, spec: Spec) -> AsyncGenerator[tuple[Watch, bool]]:
        """The watch, active, and whether this call made it. It stays as long as it is held, and when it is
        polled, ten minutes more.
        """
        watch, made = self._watches.get(spec), False
        if watch is None or watch.end is not None:
            self._make_room()
            watch, made = self._begin(spec), True
        watch.holders += 1
        try:
            await _started(watch, spec.path)
            yield watch, made
        finally:
            watch.holders -= 1
            self._let_go(spec, watch)

    async def stop(self) -> None:
        """Tells every subscriber that there is an end."""
        for watch in [*self._watches.values()]:
            watch.finish(End(reason="the runtime is stopping", failed=False))

    def _begin(self, spec: Spec) -> Watch:
        watch = Watch(
            name=f"watch-{next(self._numbers)}-{int(time.time() * 1000)}",
            tree=Tree(
                root=spec.path,
                workspace=self._workspace,
                recursive=spec.recursive,
                kinds=spec.kinds,
                wanted=Filter(root=spec.path, include=spec.include, exclude=spec.exclude, apart=self._apart),
                places=self._places,
            ),
            disk=self._disk,
            at_work=self._at_work,
        )
        self._watches[spec] = watch
        life = asyncio.create_task(watch.live(), name=watch.id)
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)
        life.add_done_callback(lambda _: self._forget(spec, watch))
        return watch

    def _make_room(self) -> None:
        if len(self._watches) < MOST_WATCHES:
            return
        idle = [item for item in self._watches.items() if not item[1].holders]
        if not idle:
            raise Fault(
                "RESOURCE_BUSY",
                f"there are {MOST_WATCHES} watches, which is the limit",
                suggestion="end one of them first; equal watches share one",
            )
        # Only a poll would come back to it, and that is told to look at everything anew.
        spec, watch = min(idle, key=lambda item: item[1].kept_until)
        self._end(spec, watch)

    def _let_go(self, spec: Spec, watch: Watch) -> None:
        if watch.holders:
            return
        failed = watch.end is not None or (watch.ready.done() and watch.ready.exception() is not None)
        if not watch.polled or failed:
            self._end(spec, watch)
            return
        if watch.timer is not None:
            watch.timer.cancel()
        watch.kept_until = time.monotonic() + RETAINED_SECONDS
        watch.timer = asyncio.get_running_loop().call_later(RETAINED_SECONDS, self._expire, spec, watch)

    def _expire(self, spec: Spec, watch: Watch) -> None:
        if not watch.holders and time.monotonic() >= watch.kept_until:
            self._end(spec, watch)

    def _end(self, spec: Spec, watch: Watch) -> None:
        if watch.timer is not None:
            watch.timer.cancel()
        self._forget(spec, watch)
        watch.stop()

    def _forget(self, spec: Spec, watch: Watch) -> None:
        if self._watches.get(spec) is watch:
            del self._watches[spec]


def _release(waiting: list[asyncio.Future[None]]) -> None:
    for each in waiting:
        if not each.done():
            each.set_result(None)


async def _started(watch: Watch, path: str) -> None:
    try:
        await asyncio.shield(watch.ready)
    except OSError as error:
        raise fault_of(error, path=path, operation="watch") from error
    except LimitError as error:
        raise Fault(
            "WATCH_START_ERROR",
            f"{shown(path)} cannot be watched: {error}",
            context={"path": shown(path), "operation": "watch"},
            suggestion="exclude large directories, end other watches, or raise the limit on the node",
        ) from error
