"""Strategic merge of a partial pod spec into a whole one, as `kubectl patch` does it: objects by field, lists
of named things by name, other lists as a whole. Two partial ones as one, and what of one did not survive.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..errors import BadPodTemplate

Json = dict[str, Any]
Path = tuple[str, ...]

_CONTAINER: Mapping[str, str] = {
    "ports": "containerPort",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}
_SPEC: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
}
# By the path to the list: `env` is merged in a container and is an ordinary field anywhere else.
MERGE_KEYS: Mapping[Path, str] = {
    **{(name,): key for name, key in _SPEC.items()},
    **{(kind, name): key for kind in ("containers", "initContainers") for name, key in _CONTAINER.items()},
    ("containers", "resources", "claims"): "name",
    ("initContainers", "resources", "claims"): "name",
    ("resources", "claims"): "name",
}
# Objects that we put something into afterwards.
OBJECTS: frozenset[Path] = frozenset(
    {("securityContext",), ("containers", "securityContext"), ("initContainers", "securityContext")}
)

_PATCH = "$patch"


def merge(base: Json, patch: Json, *, path: Path = ()) -> Json:
    """A new object; neither argument is changed. A null takes a field away."""
    if patch.get(_PATCH) == "replace":
        # Merged into nothing rather than taken as it is: what stands in it is checked as everything else.
        return merge({}, {name: value for name, value in patch.items() if name != _PATCH}, path=path)
    merged = dict(base)
    for name, value in patch.items():
        here = (*path, name)
        if value is None:
            merged.pop(name, None)
        elif here in MERGE_KEYS:
            merged[name] = _merge_lists(merged.get(name) or [], value, path=here)
        elif isinstance(value, dict):
            below = merged.get(name)
            merged[name] = merge(
                cast("Json", below) if isinstance(below, dict) else {}, cast("Json", value), path=here
            )
        elif here in OBJECTS:
            raise BadPodTemplate(f"podTemplate.spec.{'.'.join(here)} must be an object")
        else:
            merged[name] = value
    return merged


def combine(first: Json, second: Json, *, path: Path = ()) -> Json:
    """One patch that does what both do, one after the other. What cannot be merged is kept as it is, so that
    `merge` says what is wrong with it.
    """
    if second.get(_PATCH) == "replace":
        return second
    combined = dict(first)
    for name, value in second.items():
        here = (*path, name)
        if name not in first or value is None:
            combined[name] = value
        elif here in MERGE_KEYS:
            combined[name] = value if first[name] is None else _combine_lists(first[name], value, path=here)
        elif isinstance(value, dict):
            below = first[name]
            combined[name] = (
                combine(cast("Json", below), cast("Json", value), path=here)
                if isinstance(below, dict)
                else _instead(cast("Json", value))
            )
        else:
            combined[name] = value
    return combined


def overridden(wanted: Json, got: Json, *, path: Path = ()) -> Iterator[str]:
    """The places of `wanted` that are not in `got`, such as `containers[sandbox].command`."""
    for name, value in wanted.items():
        here = (*path, name)
        if name == _PATCH or value is None:
            continue
        found = got.get(name)
        if here in MERGE_KEYS:
            yield from _overridden_items(name, value, found or [], path=here)
        elif isinstance(value, dict):
            below = cast("Json", found) if isinstance(found, dict) else {}
            yield from (f"{name}.{rest}" for rest in overridden(cast("Json", value), below, path=here))
        elif found != value:
            yield name


def _merge_lists(base: list[Json], patch: Any, *, path: Path) -> list[Json]:
    items = _by_key(patch, path=path)
    key = MERGE_KEYS[path]
    merged = {item[key]: item for item in base}
    for name, item in items.items():
        if item.get(_PATCH) == "delete":
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name, {}), item, path=path)
    return list(merged.values())


def _combine_lists(first: Any, second: Any, *, path: Path) -> Any:
    combined: dict[Any, Json] = {}
    for items in (first, second):
        try:
            found = _by_key(items, path=path)
        except BadPodTemplate:
            return items
        for name, item in found.items():
            before = combined.get(name)
            if before is None or item.get(_PATCH) == "delete":
                combined[name] = item
            elif before.get(_PATCH) == "delete":
                combined[name] = _instead(item)
            else:
                combined[name] = combine(before, item, path=path)
    return list(combined.values())


def _instead(patch: Json) -> Json:
    """The same, but of what the earlier patch takes away nothing comes back."""
    return {**patch, _PATCH: "replace"}


def _overridden_items(name: str, wanted: Any, got: list[Json], *, path: Path) -> Iterator[str]:
    found = {item.get(MERGE_KEYS[path]): item for item in got}
    for key, item in _by_key(wanted, path=path).items():
        where = f"{name}[{key}]"
        if item.get(_PATCH) == "delete":
            if key in found:
                yield where
        elif key not in found:
            yield where
        else:
            yield from (f"{where}.{rest}" for rest in overridden(item, found[key], path=path))


def _by_key(items: Any, *, path: Path) -> dict[Any, Json]:
    key, where = MERGE_KEYS[path], ".".join(path)
    if not isinstance(items, list):
        raise BadPodTemplate(f"podTemplate.spec.{where} must be a list")
    found: dict[Any, Json] = {}
    for item in cast("list[Any]", items):
        if not isinstance(item, dict) or not isinstance(cast("Json", item).get(key), str | int):
            raise BadPodTemplate(f"every item of podTemplate.spec.{where} must be an object with a {key}")
        entry = cast("Json", item)
        if entry[key] in found:
            raise BadPodTemplate(f"podTemplate.spec.{where} has {entry[key]} twice")
        found[entry[key]] = entry
    return found
