"""When somebody last worked here, and what is being worked on now: the facts that sleep is decided by."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from sandpod_runtime.errors import Fault

LONGEST_LEASE = 3600.0
MOST_HOLDERS = 256


class Activity:
    """In seconds of a clock that nobody sets."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._leases: dict[str, float] = {}
        self._expected_until = 0.0
        self.in_flight = 0
        self.setting_up = False
        self.last_active = clock()
        # How many cores the user's processes have used of late; None while nobody needs to know.
        self.cores: float | None = None

    def now(self) -> float:
        return self._clock()

    def touch(self) -> None:
        """Something happened this moment: a key was pressed, a terminal wrote."""
        self.last_active = self._clock()

    @contextmanager
    def work(self) -> Generator[None]:
        """As long as this lasts, nobody may fall asleep."""
        self.in_flight += 1
        self._expected_until = 0.0
        self.touch()
        try:
            yield
        finally:
            self.in_flight -= 1
            self.touch()

    @contextmanager
    def setup(self) -> Generator[None]:
        """As `work`, for what nobody's request waits for."""
        self.setting_up = True
        try:
            yield
        finally:
            self.setting_up = False
            self.touch()

    def lease(self, holder: str, seconds: float) -> None:
        """Somebody sees activity that the runtime does not, and asks that it stay awake for so long. A lease
        only grows; with 0 seconds its holder gives it back.
        """
        held = self.leases
        if seconds <= 0:
            self._leases.pop(holder, None)
            return
        if holder not in held and len(held) >= MOST_HOLDERS:
            raise Fault(
                "RESOURCE_BUSY",
                f"{MOST_HOLDERS} hold a lease, which is the limit",
                suggestion="wait until one of them has run out",
            )
        self._expected_until = 0.0
        self.touch()
        until = self._clock() + min(seconds, LONGEST_LEASE)
        self._leases[holder] = max(until, held.get(holder, 0.0))

    def expect(self, seconds: float) -> None:
        """Somebody has asked for this sandbox and is on the way. Whoever comes first ends it, so that nothing
        sleeps later because of it.
        """
        self._expected_until = self._clock() + min(seconds, LONGEST_LEASE)

    @property
    def expected_until(self) -> float:
        """A moment that has passed when nobody is expected."""
        return self._expected_until

    @property
    def leases(self) -> dict[str, float]:
        """Who holds one, and until when."""
        now = self._clock()
        self._leases = {holder: until for holder, until in self._leases.items() if until > now}
        return self._leases
