"""How the runtime shares its time between pipes that never stop. They are real; a hand turns the loop."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest
from sandpod_runtime.process.hub import Hub

CROWD = 20


class ByHand:
    """An event loop that does what it is told to, when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reader: Callable[[], None] | None = None
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def add_reader(self, _: int, callback: Callable[[], None]) -> None:
        self.reader = callback

    def remove_reader(self, _: int) -> None:
        self.reader = None

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> None:
        self.timers.append((when, lambda: callback(*args)))

    def turn(self) -> None:
        assert self.reader is not None, "the hub rests"
        self.reader()

    def rest(self, *, late: float = 0.0) -> float:
        """Lets the rest go by, and returns how long it was to be."""
        ((when, callback),) = self.timers
        self.timers.clear()
        planned = round(when - self.now, 6)
        self.now = when + late
        callback()
        return planned


@pytest.fixture
def writers() -> Iterator[list[int]]:
    """The reading ends of pipes that always have something."""
    pipes = [os.pipe() for _ in range(CROWD)]
    for _, writer in pipes:
        os.write(writer, b"x" * 4096)
    yield [reader for reader, _ in pipes]
    for pipe in pipes:
        for end in pipe:
            os.close(end)


@pytest.fixture
def loop() -> ByHand:
    return ByHand()


def reading(loop: ByHand, pipes: list[int]) -> list[int]:
    """A hub that reads from these pipes; which it has read from, in order."""
    order: list[int] = []
    hub = Hub(cast("Any", loop))
    for pipe in pipes:
        hub.add_reader(pipe, partial(order.append, pipe))
    return order


def test_everyone_of_a_crowd_gets_a_turn(loop: ByHand, writers: list[int]) -> None:
    order = reading(loop, writers)
    while len(order) < 3 * CROWD:
        loop.turn()
        loop.rest()
    assert all(order.count(pipe) >= 2 for pipe in writers)


def test_a_few_writers_are_read_without_a_rest(loop: ByHand, writers: list[int]) -> None:
    order = reading(loop, writers[:3])
    for _ in range(5):
        loop.turn()
    assert loop.timers == []
    assert len(order) == 15


def test_the_rest_grows_while_the_runtime_gets_back_late_and_shrinks_when_it_does_not(
    loop: ByHand, writers: list[int]
) -> None:
    reading(loop, writers)

    def next_rest(*, late: float) -> float:
        loop.turn()
        return loop.rest(late=late)

    growing = [next_rest(late=0.05) for _ in range(12)]
    assert growing == sorted(growing)
    assert growing[0] < growing[5] <= growing[-1] < 1
    shrinking = [next_rest(late=0.0) for _ in range(100)]
    assert shrinking == sorted(shrinking, reverse=True)
    assert shrinking[-1] == growing[0]
