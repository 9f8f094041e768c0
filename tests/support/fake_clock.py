"""A clock that goes when a test lets it, with the timers of an event loop."""

import heapq
from collections.abc import Callable


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._sequence = 0

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[[], None], /) -> FakeTimer:
        self._sequence += 1
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (when, self._sequence, timer))
        return timer

    def until_next(self) -> float | None:
        """How long until a timer goes off; None without one."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return max(self._timers[0][0] - self._now, 0.0) if self._timers else None

    def advance(self, seconds: float) -> None:
        end = self._now + seconds
        while (wait := self.until_next()) is not None and self._now + wait <= end:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            timer.callback()
        self._now = end
