"""The sandboxes of each namespace by age, for a policy's maxSandboxes: whose turn it is, without counting
thousands of objects at every decision.
"""

from bisect import bisect_left
from collections.abc import Callable

from .objects import Json, key_of, uid_of
from .observations import Key

# When it was created, its name, its UID. Kubernetes' times sort as text.
Place = tuple[str, str, str]


def _nobody(namespace: str, number: int) -> None:
    pass


class Census:
    """`moved` is told, at once, of every change of a namespace's order and from which number on it is one."""

    def __init__(self, *, moved: Callable[[str, int], None] = _nobody) -> None:
        self._moved = moved
        self._places: dict[str, list[Place]] = {}

    def put(self, sandbox: Json) -> None:
        """It exists. One that is being deleted stands in nobody's way any more."""
        places, place = self._find(sandbox)
        index = bisect_left(places, place)
        known = index < len(places) and places[index] == place
        going = "deletionTimestamp" in sandbox["metadata"]
        if known and going:
            self.remove(sandbox)
        elif not known and not going:
            namespace = key_of(sandbox).namespace
            self._places.setdefault(namespace, places).insert(index, place)
            self._moved(namespace, index)

    def remove(self, sandbox: Json) -> None:
        namespace = key_of(sandbox).namespace
        places, place = self._find(sandbox)
        index = bisect_left(places, place)
        if index == len(places) or places[index] != place:
            return
        del places[index]
        if not places:
            del self._places[namespace]
        self._moved(namespace, index)

    def older(self, sandbox: Json) -> int:
        """How many sandboxes of its namespace were there before it."""
        places, place = self._find(sandbox)
        return bisect_left(places, place)

    def at(self, namespace: str, number: int) -> Key | None:
        """The sandbox that so many are older than."""
        places = self._places.get(namespace, [])
        return Key(namespace, places[number][1]) if 0 <= number < len(places) else None

    def _find(self, sandbox: Json) -> tuple[list[Place], Place]:
        key = key_of(sandbox)
        place = (sandbox["metadata"].get("creationTimestamp", ""), key.name, uid_of(sandbox))
        return self._places.get(key.namespace, []), place
