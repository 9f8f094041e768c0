"""What Kubernetes' garbage collector finds: who has lost all that it belonged to, or some of it."""

from collections.abc import Collection

from sandpod_crds.names import API_VERSION
from sandpod_operator.objects import Json, entries, uid_of

OURS = (API_VERSION, "v1")


def is_abandoned(obj: Json, objects: Collection[Json]) -> bool:
    return bool(_owners(obj)) and not _left(obj, objects)


def bereaved(obj: Json, objects: Collection[Json]) -> Json | None:
    """The change by which it belongs to those only who are left; None when all are there, or none."""
    left = _left(obj, objects)
    return {"metadata": {"ownerReferences": left}} if 0 < len(left) < len(_owners(obj)) else None


def _owners(obj: Json) -> list[Json]:
    """An event belongs to nobody. Whoever is not of this cluster is never looked for."""
    if obj.get("kind") == "Event":
        return []
    return [each for each in entries(obj["metadata"], "ownerReferences") if each["apiVersion"] in OURS]


def _left(obj: Json, objects: Collection[Json]) -> list[Json]:
    return [owner for owner in _owners(obj) if any(uid_of(each) == owner["uid"] for each in objects)]
