"""What objects are by our own decision though they do not say so yet: it is written to them when there is
time. For the objects of one kind, by their UID.
"""

from .objects import Json, controller, section, uid_of


class Unwritten:
    def __init__(self) -> None:
        # Owner, labels and annotations
        self._metadata: dict[str, Json] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._metadata

    def get(self, uid: str) -> Json | None:
        return self._metadata.get(uid)

    def put(self, uid: str, metadata: Json) -> None:
        self._metadata[uid] = metadata

    def drop(self, uid: str) -> None:
        """It is gone."""
        self._metadata.pop(uid, None)

    def complete(self, obj: Json) -> Json:
        """The object as it will be. One that says itself whose it is has been written."""
        uid, found = uid_of(obj), obj["metadata"]
        ours = self._metadata.get(uid)
        if ours is None:
            return obj
        if controller(found).get("uid") == controller(ours).get("uid"):
            self.drop(uid)
            return obj
        both = {name: {**section(found, name), **section(ours, name)} for name in ("labels", "annotations")}
        return {**obj, "metadata": {**found, **both, "ownerReferences": ours["ownerReferences"]}}
