"""One at a time, in the order of arrival; and what is begun goes on when its caller leaves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sandpod_runtime.limits import Slots

WAITING = 64

T = TypeVar("T")


class Turns:
    def __init__(self, session_id: str) -> None:
        self._lock = asyncio.Lock()
        self._queue = Slots(f"calls waiting for the session {session_id}", WAITING)

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    @property
    def waiting(self) -> int:
        return self._queue.taken

    async def take(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        check: Callable[[], None],
        on_leave: Callable[[], None],
    ) -> T:
        """`check` raises when there is nothing left to wait for; it is asked when the turn has come."""
        with self._queue.one():
            await self._lock.acquire()
        try:
            check()
        except BaseException:
            self._lock.release()
            raise
        task = asyncio.ensure_future(work())
        task.add_done_callback(self._over)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            on_leave()
            raise

    def _over(self, task: "asyncio.Future[T]") -> None:
        self._lock.release()
        if not task.cancelled():
            # Nobody may be left to look at it.
            task.exception()
