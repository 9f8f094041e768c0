"""Kubernetes objects as the dicts that they are: where to find what in them."""

import hashlib
import json
from typing import Any, cast

from sandpod_crds.names import API_VERSION, LABEL_INSTANCE, LABEL_POOL_UID

from .observations import Key

Json = dict[str, Any]


def section(obj: Json, name: str) -> Json:
    """The object under this name; an empty one when there is none."""
    return cast("Json", obj.get(name) or {})


def entries(obj: Json, name: str) -> list[Json]:
    """The list of objects under this name; an empty one when there is none."""
    return cast("list[Json]", obj.get(name) or [])


def key_of(obj: Json) -> Key:
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


def uid_of(obj: Json) -> str:
    return obj["metadata"]["uid"]


def version_of(obj: Json) -> int:
    # Kubernetes promises since 1.35 that these can be compared, and they could before.
    return int(obj["metadata"].get("resourceVersion") or 0)


def controller(metadata: Json) -> Json:
    """The reference to the object that this one belongs to; an empty one when it belongs to nobody."""
    owners = entries(metadata, "ownerReferences")
    return next((owner for owner in owners if owner.get("controller")), Json())


def owner_uid(obj: Json) -> str | None:
    """Of the object of ours that this one belongs to."""
    owner = controller(obj["metadata"])
    return owner.get("uid") if owner.get("apiVersion") == API_VERSION else None


def is_left_by_a_pool(obj: Json) -> bool:
    """Made for a pool, and belongs neither to it nor to a sandbox: a wall, a warm pod's volume, a stray."""
    metadata = obj["metadata"]
    labels = section(metadata, "labels")
    return LABEL_POOL_UID in labels and LABEL_INSTANCE not in labels and not controller(metadata)


def owner_reference(*, kind: str, name: str, uid: str) -> Json:
    """For a child of one of our objects. It goes with its owner, and never keeps the owner from going."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def replacing(found: Json, wanted: Json) -> Json:
    """The merge patch that makes this object that one: what is not wanted has to be taken away by name."""
    change: Json = dict.fromkeys(found.keys() - wanted.keys())
    for name, value in wanted.items():
        before = found.get(name)
        both = isinstance(before, dict) and isinstance(value, dict)
        change[name] = replacing(cast("Json", before), cast("Json", value)) if both else value
    return change


def digest(value: Any) -> str:
    """Of anything that is JSON: the same for what is the same."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
