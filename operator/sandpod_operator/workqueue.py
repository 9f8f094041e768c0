"""The work queue: keys to look at, now or at a time to come. A key waits at most once, is never given to two
workers at a time, and comes back later and later while its work fails.
"""

import asyncio
import heapq
import random
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

Key = TypeVar("Key")

FIRST_RETRY = 0.1
LONGEST_RETRY = 60.0
# What happens to a key that fails brings it back no sooner than so long after its last failure. What has
# happened may help; but events that its own work causes must not make it busy.
LONGEST_HOLD = 1.0
# Beyond this the delay is the longest anyway, and 2**1024 is no float any more.
MOST_DOUBLINGS = 16


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """What an event loop is to us; tests bring their own."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer: ...


class WorkQueue(Generic[Key]):
    def __init__(self, *, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._jitter = jitter
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        # Both in the order of arrival, so that the first is the oldest.
        self._waiting: dict[Key, float] = {}
        self._working: dict[Key, float] = {}
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        # Until when keys that failed are not looked at, whoever asks for it
        self._held: dict[Key, float] = {}
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._sequence = 0
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        return len(self._due)

    def oldest(self) -> float:
        """For how long the key that has waited longest, or is being worked on longest, has been with us."""
        now = self._clock.time()
        firsts = [next(iter(times.values())) for times in (self._waiting, self._working) if times]
        return max((now - since for since in firsts), default=0.0)

    def add(self, key: Key) -> None:
        """Look at the key now, or as soon after a failure as may be."""
        held = self._held.get(key, 0.0)
        if self._clock.time() < held:
            self._add_at(key, held)
            return
        # What a delayed look at the key would have found, this one finds.
        self._due.pop(key, None)
        if key in self._working:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting[key] = self._clock.time()
            self._ready.put_nowait(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Look at the key in so many seconds, or earlier when something else asks for it."""
        if seconds <= 0:
            self.add(key)
            return
        self._add_at(key, self._clock.time() + seconds)

    def retry(self, key: Key, *, at_least: float = 0.0) -> float:
        """Look at the key again after a failure; returns in how many seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Jitter: without it all keys that failed with the API server come back in the same moment.
        doubled = FIRST_RETRY * 2 ** min(failures, MOST_DOUBLINGS)
        delay = min(doubled, LONGEST_RETRY) * (0.75 + self._jitter() / 4)
        delay = max(delay, at_least)
        self._held[key] = self._clock.time() + max(min(delay, LONGEST_HOLD), at_least)
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """The key's work succeeded: its next failure is a first one."""
        self._failures.pop(key, None)
        self._held.pop(key, None)

    async def serve(self, handle: Callable[[Key], Awaitable[None]]) -> None:
        """One worker, for ever; several may run."""
        while True:
            key = await self.get()
            try:
                await handle(key)
            finally:
                self.done(key)

    async def get(self) -> Key:
        """The next key. Whoever gets it calls `done` when finished with it."""
        key = await self._ready.get()
        del self._waiting[key]
        self._working[key] = self._clock.time()
        return key

    def done(self, key: Key) -> None:
        del self._working[key]
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _add_at(self, key: Key, when: float) -> None:
        if key in self._waiting or self._due.get(key, when + 1) <= when:
            return
        self._due[key] = when
        self._sequence += 1
        heapq.heappush(self._heap, (when, self._sequence, key))
        self._prune()
        self._arm()

    def _fire(self) -> None:
        self._timer = None
        now = self._clock.time()
        while self._heap and self._heap[0][0] <= now:
            when, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == when:
                # First: one that is held meanwhile gets a later time.
                del self._due[key]
                self.add(key)
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            self._timer = self._clock.call_at(self._heap[0][0], self._fire)

    def _prune(self) -> None:
        # Entries that an earlier time or an `add` has overtaken stay in the heap until their time comes; a
        # key that is overtaken often must not fill it.
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._due):
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)
