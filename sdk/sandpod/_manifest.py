"""Builds the Sandbox object that a creation sends. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sandpod._requests import API_VERSION, KIND
from sandpod.errors import Invalid

Json = dict[str, Any]


def build(
    *,
    base: Json | None = None,
    name: str | None = None,
    image: str | None = None,
    env: Mapping[str, str] | None = None,
    cpu: str | None = None,
    memory: str | None = None,
    sleep_after: str | int | None = None,
    keep_alive: bool | None = None,
    labels: Mapping[str, str] | None = None,
    template: str | None = None,
    pool: str | None = None,
    workspace: str | None = None,
    storage_class: str | None = None,
    setup: Sequence[str] = (),
    processes: Mapping[str, str] | None = None,
    egress: str | None = None,
) -> Json:
    """`base` (a manifest) with what is given laid over it. Without any name the cluster makes one up."""
    manifest = copy.deepcopy(base) if base else {}
    _check(manifest)
    metadata: Json = manifest.get("metadata") or {}
    spec: Json = manifest.get("spec") or {}
    if name is not None:
        metadata["name"] = name
        metadata.pop("generateName", None)
    elif not metadata.get("name"):
        metadata.setdefault("generateName", "sandbox-")
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    fields: Json = {"image": image, "sleepAfter": sleep_after, "keepAlive": keep_alive}
    spec.update({key: value for key, value in fields.items() if value is not None})
    if env:
        spec["env"] = _environment(spec.get("env") or [], env)
    references = {"templateRef": template, "poolRef": pool}
    spec.update({key: {"name": value} for key, value in references.items() if value is not None})
    _lay_over(spec, "workspace", size=workspace, storageClassName=storage_class)
    _lay_over(spec, "network", egress=egress)
    if setup:
        spec["setup"] = list(setup)
    if processes:
        spec["processes"] = _processes(spec.get("processes") or [], processes)
    if cpu is not None or memory is not None:
        spec["resources"] = _resources(spec.get("resources") or {}, cpu=cpu, memory=memory)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _check(manifest: Json) -> None:
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if manifest.get(key, wanted) != wanted:
            raise Invalid(f"The manifest's {key} is {manifest[key]!r}, where {wanted!r} belongs.")
    for key in ("metadata", "spec"):
        if not isinstance(manifest.get(key) or {}, dict):
            raise Invalid(f"The manifest's {key} is not a map.")


def _lay_over(spec: Json, field: str, **values: str | None) -> None:
    given = {key: value for key, value in values.items() if value is not None}
    if given:
        spec[field] = {**(spec.get(field) or {}), **given}


def _processes(entries: list[Json], processes: Mapping[str, str]) -> list[Json]:
    """A process of the manifest keeps what has no argument here, such as its port."""
    known = {entry.get("name"): entry for entry in entries}
    kept = [entry for entry in entries if entry.get("name") not in processes]
    return kept + [
        {**known.get(name, {}), "name": name, "command": command} for name, command in processes.items()
    ]


def _environment(entries: list[Json], env: Mapping[str, str]) -> list[Json]:
    kept = [entry for entry in entries if entry.get("name") not in env]
    return kept + [{"name": name, "value": value} for name, value in env.items()]


def _resources(resources: Json, *, cpu: str | None, memory: str | None) -> Json:
    wanted = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    # Both, because a request that some default leaves above the limit would make the pod invalid.
    return {
        **resources,
        **{bound: {**(resources.get(bound) or {}), **wanted} for bound in ("requests", "limits")},
    }
