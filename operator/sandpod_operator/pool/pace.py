"""How fast pools are claimed from. Pure."""

from collections import defaultdict, deque
from datetime import datetime, timedelta

from ..observations import Key
from ..times import still_to_come

# So long a claim counts.
LATELY = timedelta(seconds=1)
# Of one pool; nobody is interested in more.
MOST_CLAIMS = 1000


def is_burst(claims: int, *, most_starting: int) -> bool:
    """So many lately: more than the pool could start pods for."""
    return claims > most_starting


class Pace:
    def __init__(self) -> None:
        # Until when each of the last claims counts, by the pool.
        self._until: defaultdict[Key, deque[datetime]] = defaultdict(lambda: deque(maxlen=MOST_CLAIMS))

    def claimed(self, pool: Key, *, now: datetime) -> None:
        for quiet in [each for each, until in self._until.items() if until[-1] <= now]:
            del self._until[quiet]
        self._until[pool].append(now + LATELY)

    def lately(self, pool: Key, *, now: datetime) -> tuple[datetime, ...]:
        """Until when each claim counts that was made a moment ago."""
        until = self._until.get(pool, ())
        return tuple(each for each in until if still_to_come(each, now=now, within=LATELY) is not None)
