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


class Readers(Protocol):
    def add_reader(self, descriptor: int, callback: Callable[[], None], /) -> None: ...
    def remove_reader(self, descriptor: int, /) -> object: ...


class Hub:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        loop.add_reader(self._epoll.fileno(), self._turn)

    def add_reader(self, descriptor: int, callback: Callable[[], None], /) -> None:
        self._epoll.register(descriptor, select.EPOLLIN)
        self._callbacks[descriptor] = callback

    def remove_reader(self, descriptor: int, /) -> None:
        self._epoll.unregister(descriptor)
        del self._callbacks[descriptor]

    def _turn(self) -> None:
        for descriptor, _ in self._epoll.poll(0, _AT_ONCE):
            # One callback may end another's pipe.
            if callback := self._callbacks.get(descriptor):
                callback()
