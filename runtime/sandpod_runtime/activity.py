"""When somebody last worked here, and how much is being worked on now: what sleep is decided by."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager


class Activity:
    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self.in_flight = 0
        self.last_active_at = now()

    def touch(self) -> None:
        """Something happened this moment: a key was pressed, a terminal wrote."""
        self.last_active_at = self._now()

    @contextmanager
    def work(self) -> Generator[None]:
        """As long as this lasts, nobody may fall asleep."""
        self.in_flight += 1
        self.touch()
        try:
            yield
        finally:
            self.in_flight -= 1
            self.touch()
