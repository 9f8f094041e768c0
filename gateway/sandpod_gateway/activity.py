"""What is under way to programs, looked at again and again. Traffic is activity: a sandbox stays awake while
a request waits for an answer, or while bytes flow; a connection on which nothing moves keeps nothing awake.
And a stream ends when the address that it came by has ceased to open the port.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator
from typing import Final

from .audit import Exchange
from .errors import Refusal
from .leases import Leases
from .proxy import Runtime

# A program that has not begun to answer by then is not waited for any longer: it may be one that never does.
LONGEST_SILENCE: Final = 300.0
# Of a lease: often enough that none ends between two looks.
_SHARE: Final = 0.4


class _Watched:
    def __init__(
        self,
        runtime: Runtime,
        exchange: Exchange,
        *,
        since: float,
        may_go_on: Callable[[], bool],
        cut: Callable[[], None],
    ) -> None:
        self.may_go_on = may_go_on
        self.cut = cut
        self._exchange = exchange
        self._since = since
        self._moved = 0
        self.runtime = runtime

    def is_busy(self, now: float) -> bool:
        moved, self._moved = self._exchange.moved != self._moved, self._exchange.moved
        unanswered = not self._exchange.status and now - self._since < LONGEST_SILENCE
        return moved or unanswered


class Activity:
    def __init__(
        self, *, leases: Leases, lease_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._leases = leases
        self._pause = lease_seconds * _SHARE
        self._clock = clock
        self._watched: set[_Watched] = set()
        self._renewing: dict[str, asyncio.Task[None]] = {}

    @contextlib.contextmanager
    def of(
        self,
        runtime: Runtime,
        exchange: Exchange,
        *,
        may_go_on: Callable[[], bool],
        cut: Callable[[], None],
    ) -> Generator[None]:
        watched = _Watched(runtime, exchange, since=self._clock(), may_go_on=may_go_on, cut=cut)
        self._watched.add(watched)
        try:
            yield
        finally:
            self._watched.discard(watched)

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._pause)
                self.look()
        finally:
            for task in self._renewing.values():
                task.cancel()

    def look(self) -> None:
        now = self._clock()
        for over in [each for each in self._watched if not each.may_go_on()]:
            self._watched.discard(over)
            over.cut()
        busy = {each.runtime.pod_uid: each.runtime for each in self._watched if each.is_busy(now)}
        for pod_uid, runtime in busy.items():
            # One that does not answer is asked once, and nobody waits for it.
            if pod_uid not in self._renewing and not self._leases.holds(pod_uid):
                task = asyncio.create_task(self._renew(runtime))
                self._renewing[pod_uid] = task
                task.add_done_callback(lambda _, pod_uid=pod_uid: self._renewing.pop(pod_uid, None))

    async def _renew(self, runtime: Runtime) -> None:
        # One that goes to sleep all the same was told to: what flows will end with its pod.
        with contextlib.suppress(Refusal):
            await self._leases.ensure(
                pod_uid=runtime.pod_uid, address=runtime.address, credential=runtime.credential
            )
