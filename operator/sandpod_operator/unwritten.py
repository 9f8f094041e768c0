"""What objects are by our own decision though they do not say so yet: it is written to them when there is
time. For the objects of one kind, by their UID.
"""

from typing import NamedTuple

from .objects import Json, controller, section, uid_of


class _Change(NamedTuple):
    # The owner's UID, as the object says.
    before: str | None
    # Owner, labels and annotations, as they will be
    metadata: Json


class Unwritten:
    def __init__(self) -> None:
        self._changes: dict[str, _Change] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._changes

    def get(self, uid: str) -> Json | None:
        change = self._changes.get(uid)
        return change.metadata if change is not None else None

    def put(self, obj: Json, metadata: Json) -> None:
        self._changes[uid_of(obj)] = _Change(controller(obj["metadata"]).get("uid"), metadata)

    def drop(self, uid: str) -> None:
        """Nothing is to be written to it any more."""
        self._changes.pop(uid, None)

    def complete(self, obj: Json) -> Json:
        """The object as it will be. One that has got another owner since is what it says: it was written, or
        somebody else was there first.
        """
        uid, found = uid_of(obj), obj["metadata"]
        change = self._changes.get(uid)
        if change is None:
            return obj
        if controller(found).get("uid") not in (change.before, None):
            self.drop(uid)
            return obj
        ours = change.metadata
        both = {name: {**section(found, name), **section(ours, name)} for name in ("labels", "annotations")}
        return {**obj, "metadata": {**found, **both, "ownerReferences": ours["ownerReferences"]}}
