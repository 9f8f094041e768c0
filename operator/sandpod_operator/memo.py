"""Remembers what was worked out a moment ago, for as long as it is made from the same. A start looks at its
pod and its policy at every step, and to make them anew each time was half of what deciding costs.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

# More starts are hardly under way at a time; whoever is pushed out is worked out once more.
MOST = 512


class Memo:
    """Nobody may change what it hands out."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        # What each was made from, and what came of it, the oldest first
        self._known: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}

    def recall(self, key: Hashable, made_from: tuple[Any, ...], make: Callable[[], T]) -> T:
        known = self._known.get(key)
        if known is not None and known[0] == made_from:
            return known[1]
        made = make()
        self._known.pop(key, None)
        self._known[key] = (made_from, made)
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return made
