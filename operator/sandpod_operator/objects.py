"""Kubernetes objects as the dicts that they are: where to find what in them."""

from typing import Any, cast

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
    return Key(metadata["namespace"], metadata["name"])


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
    return controller(obj["metadata"]).get("uid")
