"""The sandboxes of each namespace by age, for a policy's maxSandboxes: whose turn it is, without counting
thousands of objects at every decision.
"""

from bisect import bisect_left, insort

from .objects import Json, key_of, uid_of
from .observations import Key

# When it was created, its name, its UID. Kubernetes' times sort as text.
Place = tuple[str, str, str]


class Census:
    def __init__(self) -> None:
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
            insort(self._places.setdefault(key_of(sandbox).namespace, places), place)

    def remove(self, sandbox: Json) -> None:
        namespace = key_of(sandbox).namespace
        places, place = self._find(sandbox)
        index = bisect_left(places, place)
        if index < len(places) and places[index] == place:
            del places[index]
        if not places:
            self._places.pop(namespace, None)

    def older(self, sandbox: Json) -> int:
        """How many sandboxes of its namespace were there before it."""
        places, place = self._find(sandbox)
        return bisect_left(places, place)

    def at(self, namespace: str, number: int) -> Key | None:
        """The sandbox that so many are older than: when one of these has gone, it is its turn."""
        places = self._places.get(namespace, [])
        return Key(namespace, places[number][1]) if 0 <= number < len(places) else None

    def _find(self, sandbox: Json) -> tuple[list[Place], Place]:
        key = key_of(sandbox)
        place = (sandbox["metadata"].get("creationTimestamp", ""), key.name, uid_of(sandbox))
        return self._places.get(key.namespace, []), place
