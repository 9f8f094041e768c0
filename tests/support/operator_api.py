"""A small API server in memory, for tests of the operator: resourceVersions that grow, UIDs that never come
back, names that are unique, preconditions, merge patches, graceful deletion, and watch events in the order
of the writes.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast

from sandpod_crds.errors import Conflict, NotFound
from sandpod_operator.cluster import Query
from sandpod_operator.objects import Json, section
from sandpod_operator.times import format_time

GRACE = 30


class Killed(BaseException):
    """The operator's process ends here."""


class Api:
    """`before` and `after` are called around every call with its number, verb and path; they may raise.
    `called` hears of every call, whatever becomes of it.
    """

    def __init__(self, *, now: Callable[[], datetime], called: Callable[[], None] = lambda: None) -> None:
        self.now = now
        self.called = called
        self.objects: dict[str, Json] = {}
        # (type, object) in the order of the writes, for whoever watches
        self.log: list[tuple[str, Json]] = []
        self.calls: list[str] = []
        self.before: Callable[[int, str], None] = lambda number, call: None
        self.after: Callable[[int, str], None] = lambda number, call: None
        # A mutating admission webhook, of whatever is written.
        self.admit: Callable[[Json], None] = lambda obj: None
        self._version = 100
        self._uids = 0

    # What the operator calls

    async def get(self, path: str, *, query: Query | None = None) -> Json:
        if query is not None:
            return await self.list(path, query=query)
        return self._do("GET", path, lambda: copied(self._find(path)))

    async def create(self, path: str, body: Json, *, query: Query | None = None) -> Json:
        return self._do("POST", path, lambda: self._create(f"{path}/{body['metadata']['name']}", body))

    async def patch(self, path: str, body: Json) -> Json:
        whole = not path.endswith("/status")
        return self._do("PATCH", path, lambda: self._patch(path.removesuffix("/status"), body, whole=whole))

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Json:
        return self._do(
            "DELETE", path, lambda: self._delete(path, uid=uid, version=version, grace=grace_seconds)
        )

    async def list(self, path: str, *, query: Query | None = None, metadata_only: bool = False) -> Json:
        selector = str((query or {}).get("labelSelector", ""))
        return self._do("LIST", path, lambda: self.listing(path, selector=selector))

    # What others do

    def listing(self, path: str, *, selector: str = "") -> Json:
        *_, plural = path.split("/")
        found = [o for where, o in self.objects.items() if where.split("/")[-2] == plural]
        wanted = {tuple(label.split("=")) for label in selector.split(",") if label}
        items = [copied(o) for o in found if wanted <= section(o["metadata"], "labels").items()]
        return {"metadata": {"resourceVersion": str(self._version)}, "items": items}

    def put(self, path: str, body: Json) -> Json:
        """As a user creates it."""
        return self._create(path, body)

    def change(self, path: str, change: Json) -> Json:
        """As a user, or the kubelet, changes it; a changed spec is a new generation."""
        if "spec" in change:
            generation = self._find(path)["metadata"].get("generation", 1) + 1
            change = {**change, "metadata": {**section(change, "metadata"), "generation": generation}}
        return self._patch(path, change)

    def vanish(self, path: str) -> None:
        """As the kubelet, the garbage collector or `--force` ends it."""
        gone = self.objects.pop(path)
        gone["metadata"]["resourceVersion"] = self._next_version()
        self.log.append(("DELETED", copied(gone)))

    def _do(self, verb: str, path: str, action: Callable[[], Json]) -> Json:
        call = f"{verb} {path}"
        self.calls.append(call)
        self.called()
        number = len(self.calls)
        self.before(number, call)
        answer = action()
        self.after(number, call)
        return answer

    def _find(self, path: str) -> Json:
        if path not in self.objects:
            raise NotFound(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _create(self, path: str, body: Json) -> Json:
        if path in self.objects:
            raise Conflict(409, "AlreadyExists", f"{path} already exists")
        self._uids += 1
        obj = copied(body)
        obj["metadata"] |= {
            "uid": f"uid-{self._uids}",
            "generation": 1,
            "creationTimestamp": format_time(self.now()),
        }
        if "/pods/" in path:
            obj["status"] = {"phase": "Pending"}
        return self._store(path, obj, kind="ADDED")

    def _patch(self, path: str, body: Json, *, whole: bool = True) -> Json:
        old = self._find(path)
        # As the real one: in a patch of the status it is ignored.
        uid = section(body, "metadata").get("uid") if whole else None
        if uid not in (None, old["metadata"]["uid"]):
            raise Conflict(409, "Conflict", "Precondition failed: UID in precondition")
        version = section(body, "metadata").get("resourceVersion")
        if version not in (None, old["metadata"]["resourceVersion"]):
            raise Conflict(409, "Conflict", "the object has been modified")
        return self._store(path, merge_patch(old, body), kind="MODIFIED")

    def _delete(self, path: str, *, uid: str | None, version: str | None, grace: int | None) -> Json:
        obj = self._find(path)
        if uid not in (None, obj["metadata"]["uid"]):
            raise Conflict(409, "Conflict", "Precondition failed: UID in precondition")
        if version not in (None, obj["metadata"]["resourceVersion"]):
            raise Conflict(409, "Conflict", "Precondition failed: ResourceVersion in precondition")
        seconds = GRACE if grace is None else grace
        if seconds and section(obj, "spec").get("nodeName"):
            if "deletionTimestamp" in obj["metadata"]:
                return copied(obj)
            until = format_time(self.now() + timedelta(seconds=seconds))
            return self._store(
                path, merge_patch(obj, {"metadata": {"deletionTimestamp": until}}), kind="MODIFIED"
            )
        self.vanish(path)
        return {"kind": "Status", "status": "Success"}

    def _store(self, path: str, obj: Json, *, kind: str) -> Json:
        self.admit(obj)
        if obj == self.objects.get(path):
            # A write that changes nothing is none.
            return copied(obj)
        obj["metadata"]["resourceVersion"] = self._next_version()
        self.objects[path] = obj
        self.log.append((kind, copied(obj)))
        return copied(obj)

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def copied(value: Any) -> Any:
    """Of what JSON has. With deepcopy, which knows more, thousands of histories take half as long again."""
    if isinstance(value, dict):
        return {name: copied(each) for name, each in cast("Json", value).items()}
    if isinstance(value, list):
        return [copied(each) for each in cast("list[Any]", value)]
    return value


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copied(patch)
    merged = dict(cast("Json", target)) if isinstance(target, dict) else Json()
    for name, value in cast("Json", patch).items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged
