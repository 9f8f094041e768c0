"""Running a generator that works on the disk, one step at a time in a disk thread.

Between two steps nothing is held but memory: a slow client costs no thread, and one that hangs up ends the
work at the next step.
"""

import asyncio
import logging
from collections.abc import Generator
from typing import Generic, TypeVar

from sandpod_runtime.disk import Disk

Out = TypeVar("Out")
In = TypeVar("In")

logger = logging.getLogger(__name__)
_closing: set["asyncio.Task[None]"] = set()


class EndedError(Exception):
    """There is no further step."""


class Steps(Generic[Out, In]):
    def __init__(self, work: Generator[Out, In, None], *, disk: Disk) -> None:
        self._work = work
        self._disk = disk
        self._running: asyncio.Task[Out] | None = None

    async def next(self) -> Out:
        """Raises EndedError, or whatever the work raises."""
        return await self._run(None)

    async def send(self, value: In) -> Out:
        """The same, for work that is told something with each step."""
        return await self._run(value)

    def close(self) -> None:
        """Soon: a step that is under way goes on to its end first."""
        task = asyncio.get_running_loop().create_task(self._close())
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    async def closed(self) -> None:
        await asyncio.shield(asyncio.ensure_future(self._close()))

    async def _run(self, value: In | None) -> Out:
        self._running = asyncio.ensure_future(self._disk.run(self._step, value))
        # A caller that is cancelled must not leave a step that nobody knows of.
        return await asyncio.shield(self._running)

    def _step(self, value: In | None) -> Out:
        try:
            return next(self._work) if value is None else self._work.send(value)
        except StopIteration as end:
            raise EndedError from end

    async def _close(self) -> None:
        if self._running is not None:
            await asyncio.wait([self._running])
            if not self._running.cancelled():
                self._running.exception()  # it was told, or its caller has left
        await self._disk.run(self._work.close)
