"""Notices that somebody undoes what the operator writes, such as another controller or an admission webhook.
Who answers each time at once works at the other's pace, for ever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from .observations import Key

# So often it is put right at once: people make mistakes, and correct them.
AT_ONCE = 5
# What was written no longer ago than this and has to be written again, somebody has undone.
SOON = timedelta(seconds=60)
MOST_REMEMBERED = 10_000


@dataclass(slots=True)
class _Written:
    wanted: str
    times: int
    # Until when it counts.
    until: datetime


class Undone:
    def __init__(self, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._written: dict[tuple[str, Key], _Written] = {}

    def lately(self, matter: str, where: Key) -> bool:
        """Something was written there a moment ago."""
        written = self._written.get((matter, where))
        return written is not None and self._now() < written.until

    def too_often(self, matter: str, where: Key, *, wanted: str) -> bool:
        """Takes note of a write; True when there was one again and again, and always the same is `wanted`."""
        before = self._written.pop((matter, where), None)
        again = before is not None and before.wanted == wanted and self._now() < before.until
        times = before.times + 1 if before is not None and again else 1
        self._written[matter, where] = _Written(wanted, times, self._now() + SOON)
        if len(self._written) > MOST_REMEMBERED:
            del self._written[next(iter(self._written))]
        return times > AT_ONCE

    def put_off(self, matter: str, where: Key, *, until: datetime) -> None:
        """The next write comes then, and is not forgiven for having waited."""
        self._written[matter, where].until = until + SOON
