"""Which pipes have output, asked a few at a time: hundreds of programs that never stop writing must not keep
the event loop from everything else.

The loop sees one descriptor for all of them. The kernel puts a pipe that was reported at the end of its own
queue, so that each gets its turn. It is also cheaper than the loop's own readers, for each command has two.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Protocol

# Reads of some 100 microseconds at most each, between two looks at the rest of the world.
_AT_ONCE = 8
# A crowd of programs that write without a pause is let go on only as fast as the machine has time for: each
# read wakes a writer, and hundreds of those would leave the runtime a hundredth of a core. It rests between
# turns, longer while it gets back late, and less while it does not.
_LATE_SECONDS = 0.002
_SHORTEST_REST = 0.001
_LONGEST_REST = 0.128


class Readers(Protocol):
    def add_reader(self, descriptor: int, callback: Callable[[], None], /) -> None: ...
    def remove_reader(self, descriptor: int, /) -> object: ...


class Hub:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._loop = loop
        self._rest = _SHORTEST_REST
        loop.add_reader(self._epoll.fileno(), self._turn)

    def add_reader(self, descriptor: int, callback: Callable[[], None], /) -> None:
        self._epoll.register(descriptor, select.EPOLLIN)
        self._callbacks[descriptor] = callback

    def remove_reader(self, descriptor: int, /) -> None:
        self._epoll.unregister(descriptor)
        del self._callbacks[descriptor]

    def _turn(self) -> None:
        ready = self._epoll.poll(0, _AT_ONCE)
        for descriptor, _ in ready:
            # One callback may end another's pipe.
            if callback := self._callbacks.get(descriptor):
                callback()
        if len(ready) == _AT_ONCE:
            self._loop.remove_reader(self._epoll.fileno())
            until = self._loop.time() + self._rest
            self._loop.call_at(until, self._go_on, until)

    def _go_on(self, planned: float) -> None:
        is_late = self._loop.time() - planned > _LATE_SECONDS
        self._rest = min(self._rest * 2, _LONGEST_REST) if is_late else max(self._rest * 0.9, _SHORTEST_REST)
        self._loop.add_reader(self._epoll.fileno(), self._turn)
