"""Waits for the moment in which nothing keeps the sandbox awake."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sandpod_runtime.activity import Activity
from sandpod_runtime.lifecycle.idleness import BUSY_CORES, CpuUse, Idleness

# The CPU is looked at so many times before a sleep, but neither for every moment nor hardly ever.
_LOOKS = 4
_SHORTEST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
# A collection of garbage or a glance at files is not work: what counts is the average over so long.
_LONGEST_WINDOW = 60.0

logger = logging.getLogger(__name__)


class Sleeper:
    def __init__(
        self, *, activity: Activity, idleness: Idleness, cpu_seconds: Callable[[], Awaitable[float]]
    ) -> None:
        self._activity = activity
        self._idleness = idleness
        self._cpu_seconds = cpu_seconds
        self._use = CpuUse()

    async def idle(self) -> None:
        """Whoever awaits this goes on in the very step in which it was decided, before any other request."""
        while (left := self._idleness.left()) != 0:
            await self._rest(self._pause(left))
            if self._idleness.left() is None:
                self._forget_cpu()
            else:
                await self._look_at_cpu()

    def _pause(self, left: float | None) -> float:
        sleep_after = self._idleness.settings.sleep_after
        if not self._idleness.ever or sleep_after is None:
            return _LONGEST_PAUSE
        pause = min(max(sleep_after / _LOOKS, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        return pause if left is None else min(left, pause)

    async def _rest(self, seconds: float) -> None:
        changed = self._idleness.changed
        changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            pass

    def _forget_cpu(self) -> None:
        self._activity.cores = None
        self._use.forget()

    async def _look_at_cpu(self) -> None:
        try:
            used = await self._cpu_seconds()
        except OSError as error:
            logger.warning("the CPU time cannot be read", extra={"reason": str(error)})
            return
        window = min(self._idleness.settings.sleep_after or 0.0, _LONGEST_WINDOW)
        cores = self._use.cores(now=self._activity.now(), used=used, window=window)
        self._activity.cores = cores
        if cores >= BUSY_CORES:
            self._activity.touch()
