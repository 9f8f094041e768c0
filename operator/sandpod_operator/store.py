"""What the operator knows of the cluster: the newest version seen of every sandbox and every sandbox's pod,
from watches and from its own writes, and what was observed beside them.
"""

from collections.abc import Callable, Iterator

from sandpod_crds.names import GROUP

from .objects import Json, entries, key_of, owner_uid, section, uid_of, version_of
from .observations import Answer, Key, Refusal

# Objects that were deleted are remembered for so many deletions, so that the late answer to a write does not
# bring one back.
TOMBSTONES = 10_000


class Cache:
    """The objects of one kind. Only a newer version replaces one."""

    def __init__(self, *, slim: Callable[[Json], Json]) -> None:
        self._slim = slim
        self._objects: dict[Key, Json] = {}
        self._deleted: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._objects))

    def get(self, key: Key) -> Json | None:
        return self._objects.get(key)

    def observe(self, obj: Json) -> bool:
        """An event of a watch says that this object exists."""
        # A pod that left the watch by losing its labels comes back this way.
        self._deleted.pop(uid_of(obj), None)
        return self._put(obj)

    def learn(self, obj: Json) -> bool:
        """A write of ours was answered with this object: the next pass reads it without the watch's delay."""
        return uid_of(obj) not in self._deleted and self._put(obj)

    def remove(self, key: Key, *, uid: str) -> bool:
        """This very object is gone; another of the same name stays."""
        self._deleted[uid] = None
        if len(self._deleted) > TOMBSTONES:
            del self._deleted[next(iter(self._deleted))]
        known = self._objects.get(key)
        if known is None or uid_of(known) != uid:
            return False
        del self._objects[key]
        return True

    def knows_deleted(self, uid: str) -> bool:
        return uid in self._deleted

    def _put(self, obj: Json) -> bool:
        key = key_of(obj)
        known = self._objects.get(key)
        if known is not None and version_of(known) >= version_of(obj):
            return False
        self._objects[key] = self._slim(obj)
        return True


class Store:
    def __init__(self) -> None:
        self.sandboxes = Cache(slim=slim_sandbox)
        self.pods = Cache(slim=slim_pod)
        # UIDs of sandboxes whose deletion was seen and whose pods may still be there.
        self._departed: dict[Key, str] = {}
        self._answers: dict[str, Answer] = {}
        self._refusals: dict[Key, Refusal] = {}

    def sandbox_deleted(self, key: Key, *, uid: str) -> None:
        self.sandboxes.remove(key, uid=uid)
        self._refusals.pop(key, None)
        pod = self.pods.get(key)
        if pod is not None and owner_uid(pod) == uid:
            self._departed[key] = uid

    def pod_deleted(self, key: Key, *, uid: str) -> None:
        self.pods.remove(key, uid=uid)
        self._answers.pop(uid, None)
        if self.pods.get(key) is None:
            self._departed.pop(key, None)

    def departed(self, key: Key) -> str | None:
        """The UID of the sandbox of this name that was deleted and has left its pod behind."""
        return self._departed.get(key)

    def answer(self, pod_uid: str) -> Answer | None:
        return self._answers.get(pod_uid)

    def put_answer(self, key: Key, answer: Answer) -> bool:
        """False when the pod is gone: then nobody needs the answer, and nobody would remove it."""
        pod = self.pods.get(key)
        if pod is None or uid_of(pod) != answer.pod_uid:
            return False
        self._answers[answer.pod_uid] = answer
        return True

    def refusal(self, key: Key) -> Refusal | None:
        return self._refusals.get(key)

    def put_refusal(self, key: Key, refusal: Refusal) -> None:
        self._refusals[key] = refusal

    def drop_refusal(self, key: Key) -> None:
        self._refusals.pop(key, None)


def slim_sandbox(obj: Json) -> Json:
    """Without what nobody here reads: with thousands of sandboxes it would be most of the memory."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("managedFields", "annotations")}
    annotations = section(obj["metadata"], "annotations")
    metadata["annotations"] = {k: v for k, v in annotations.items() if k.startswith(f"{GROUP}/")}
    return {"metadata": metadata, "spec": section(obj, "spec"), "status": section(obj, "status")}


def slim_pod(obj: Json) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    spec = {k: v for k, v in section(obj, "spec").items() if k == "nodeName"}
    spec["volumes"] = [v for v in entries(section(obj, "spec"), "volumes") if "persistentVolumeClaim" in v]
    return {"metadata": metadata, "spec": spec, "status": section(obj, "status")}
