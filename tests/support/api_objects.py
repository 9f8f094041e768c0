"""The Sandboxes of the tests' API server: their versions, the history that watches replay, their tables."""

import asyncio
import itertools
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

Json = dict[str, Any]

_COLUMNS = (("Name", 0), ("Phase", 0), ("Ready", 0), ("Sleeps-After", 0), ("Reason", 1), ("Age", 0))


def status(code: int, reason: str, message: str, **details: Any) -> Json:
    """A Kubernetes Status object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
        **({"details": details} if details else {}),
    }


class Refused(Exception):
    """Ends a request with this Status."""

    def __init__(self, body: Json, **headers: str) -> None:
        super().__init__(body["message"])
        self.body = body
        self.headers = headers


class Store:
    """To be used on one event loop only."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Json] = {}
        self._history: list[tuple[int, str, Json]] = []
        self._versions = itertools.count(1)
        self._oldest = 0
        self._watches = 0
        self._changes = asyncio.Event()

    def version(self) -> str:
        return str(next(self._versions))

    def found(self, namespace: str, name: str) -> Json:
        if (namespace, name) not in self.objects:
            missing = f'sandboxes.sandpod.dev "{name}" not found'
            raise Refused(status(404, "NotFound", missing, name=name, group="sandpod.dev", kind="sandboxes"))
        return self.objects[namespace, name]

    def create(self, namespace: str, manifest: Json, *, ready: bool) -> Json:
        metadata: Json = manifest["metadata"]
        name: str = metadata.get("name") or metadata["generateName"] + secrets.token_hex(3)
        if (namespace, name) in self.objects:
            taken = f'sandboxes.sandpod.dev "{name}" already exists'
            raise Refused(status(409, "AlreadyExists", taken, name=name, kind="sandboxes"))
        given: Json = {"name": name, "namespace": namespace, "uid": secrets.token_hex(8), "managedFields": []}
        made: Json = {
            "apiVersion": "sandpod.dev/v1alpha1",
            "kind": "Sandbox",
            "metadata": {**metadata, **given},
            "spec": manifest.get("spec") or {},
        }
        self.objects[namespace, name] = made
        self._record("ADDED", made)
        if ready:
            self.write(made, ready_status(phase="Running", ready=True, reason="Answering"))
        return made

    def write(self, found: Json, content: Json) -> None:
        found["status"] = content
        self._record("MODIFIED", found)

    def patch(self, found: Json, changes: Json) -> None:
        """A JSON merge patch of what the SDK changes: fields of the spec, annotations."""
        found["spec"].update(changes.get("spec", {}))
        if "spec" in changes:
            found["metadata"]["generation"] = found["metadata"].get("generation", 1) + 1
        annotations: Json = changes.get("metadata", {}).get("annotations", {})
        found["metadata"].setdefault("annotations", {}).update(annotations)
        self._record("MODIFIED", found)

    def delete(self, namespace: str, name: str) -> None:
        self._record("DELETED", self.objects.pop((namespace, name)))

    def expire(self) -> None:
        self._oldest = next(self._versions)
        self._tell()

    def end_watches(self) -> None:
        self._watches += 1
        self._tell()

    async def changes(self, version: int) -> AsyncIterator[tuple[str, Json]]:
        """What came after this version, and then what comes."""
        mine = self._watches
        while mine == self._watches:
            changes = self._changes
            if version < self._oldest:
                yield "ERROR", status(410, "Expired", "too old resource version")
                return
            for at, kind, each in list(self._history):
                if at > version:
                    version = at
                    yield kind, each
            await changes.wait()

    def _record(self, kind: str, found: Json) -> None:
        found["metadata"]["resourceVersion"] = self.version()
        copy: Json = json.loads(json.dumps(found))
        self._history.append((int(copy["metadata"]["resourceVersion"]), kind, copy))
        self._tell()

    def _tell(self) -> None:
        self._changes.set()
        self._changes = asyncio.Event()


def ready_status(*, phase: str, ready: bool, reason: str, message: str = "", **others: Json) -> Json:
    condition = {"type": "Ready", "status": str(ready), "reason": reason, "message": message}
    conditions = [condition, *({"type": kind, **content} for kind, content in others.items())]
    return {"phase": phase, "conditions": conditions, "sleepAfter": "10m"}


def obeyed(found: Json) -> Json:
    """The status that the operator gives in the end to what was asked for."""
    if found["spec"].get("paused"):
        asleep = ready_status(phase="Asleep", ready=False, reason="Paused", message="It sleeps.")
        return {**asleep, "sleepReason": "Paused", "asleepSince": "2031-01-01T00:00:00Z"}
    awake = ready_status(phase="Running", ready=True, reason="Answering")
    request = found["metadata"].get("annotations", {}).get("sandpod.dev/wake-requested-at")
    return {
        **awake,
        "wakeObserved": request,
        "observedGeneration": found["metadata"].get("generation", 1),
        "asleepSince": None,
    }


def is_ready(found: Json) -> bool:
    conditions: list[Json] = found.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def table(items: list[Json]) -> Json:
    """As the API server prints these objects."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": items[0]["metadata"]["resourceVersion"]} if items else {},
        "columnDefinitions": [{"name": name, "type": "string", "priority": high} for name, high in _COLUMNS],
        "rows": [{"cells": _cells(item), "object": {"metadata": item["metadata"]}} for item in items],
    }


def _cells(item: Json) -> list[str | None]:
    content: Json = item.get("status", {})
    conditions: list[Json] = content.get("conditions", [])[:1]
    ready: Json = conditions[0] if conditions else {}
    shown = (content.get("phase"), ready.get("status"), content.get("sleepAfter"), ready.get("reason"))
    return [item["metadata"]["name"], *shown, "5s"]
