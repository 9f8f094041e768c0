"""How often and how much at once: token buckets by name, and places of which each name may have so many. Both
forget whoever is quiet, so that nobody fills them by calling himself something new each time.
"""

import contextlib
import ipaddress
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Final

from .errors import TooMany

# Names remembered per table; about 200 bytes each.
SIZE: Final = 16384


class Buckets:
    """Each name has `burst` requests and gets `per_second` back. Whoever is forgotten begins with a full
    bucket, as anybody does who has been quiet for long.
    """

    def __init__(
        self,
        *,
        per_second: float,
        burst: int,
        size: int = SIZE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._size = size
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str) -> float:
        """Takes one. 0 when there was one, else the seconds until there is, and then nothing is taken."""
        level = self._level(name)
        if level < 1:
            return (1 - level) / self._per_second
        self._levels[name] = (level - 1, self._clock())
        self._levels.move_to_end(name)
        while len(self._levels) > self._size:
            self._levels.popitem(last=False)
        return 0.0

    def give_back(self, name: str) -> None:
        """What was taken turned out to be free."""
        self._levels[name] = (min(self._level(name) + 1, float(self._burst)), self._clock())

    def _level(self, name: str) -> float:
        known = self._levels.get(name)
        if known is None:
            return float(self._burst)
        level, at = known
        return min(level + (self._clock() - at) * self._per_second, float(self._burst))


class Places:
    """So many at a time in all, and so many for each name."""

    def __init__(self, *, each: int, total: int, full: str) -> None:
        """`full` is what somebody is told for whom there is none, as a sentence's beginning."""
        self._each = each
        self._total = total
        self._full = full
        self._taken: Counter[str] = Counter()
        self.taken = 0

    @contextlib.contextmanager
    def enter(self, name: str) -> Generator[None]:
        if self._taken[name] >= self._each or self.taken >= self._total:
            raise TooMany(f"{self._full}: wait for one to end", retry_after=1)
        self._taken[name] += 1
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]


class Rates:
    """What users and addresses may ask of one replica, at every door."""

    def __init__(self, *, users: Buckets, sources: Buckets, count: Callable[[str], None]) -> None:
        """`count` is told whose limit a request met: `user` or `source`."""
        self._users = users
        self._sources = sources
        self._count = count

    def admit_source(self, source: str) -> None:
        self._admit(self._sources, network_of(source), by="source", what=f"the address {source}")

    def admit_user(self, user: str) -> None:
        self._admit(self._users, user, by="user", what=f'user "{user}"')

    def _admit(self, buckets: Buckets, name: str, *, by: str, what: str) -> None:
        if wait := buckets.take(name):
            self._count(by)
            raise TooMany(f"{what} sends requests faster than is allowed here", retry_after=seconds(wait))


def seconds(wait: float) -> int:
    """For `Retry-After`, which knows whole seconds only."""
    return max(math.ceil(wait), 1)


# Reading an address costs more than all the rest that is done here for a request.
@lru_cache(maxsize=4096)
def network_of(source: str) -> str:
    """Whose address it is: of IPv6, one customer has 2**64 at least."""
    try:
        address = ipaddress.ip_address(source.partition("%")[0])
    except ValueError:
        return source
    if isinstance(address, ipaddress.IPv4Address):
        return source
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
