"""A small cluster around the whole operator: an API server over HTTP, a node, and pictures of what there is,
so that the end of one history can be compared with that of another.
"""

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from sandpod_crds.names import API_VERSION
from sandpod_operator import health
from sandpod_operator.kinds import NAMESPACE as NAMESPACES
from sandpod_operator.kinds import POD, POLICY, SANDBOX, Kind
from sandpod_operator.objects import Json, key_of, section, uid_of
from sandpod_operator.settings import Settings

from tests.support.operator_api import Api
from tests.support.operator_thread import OperatorThread
from tests.support.operator_world import BY_NAME
from tests.support.small_node import SmallNode
from tests.support.watched_api_server import WatchedApiServer

NAMESPACE = "team"
SETTINGS = Settings.model_validate(
    {
        "sandboxImage": "sandpod/sandbox:0.1.0",
        "runtimeImage": "sandpod/runtime:0.1.0",
        "runtimeMount": "ImageVolume",
        # There is no gateway.
        "certificates": "External",
        "network": {"detectEnforcement": False},
    }
)
# What differs from one history to the next that comes to the same: times, addresses, nonces and hashes of
# them.
PASSING = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z|10\.1\.0\.\d+|\b[0-9a-f]{16,64}\b")
UID = re.compile(r"uid-\d+")
WRITES = ("POST", "PATCH", "DELETE")


class WatchedCluster:
    def __init__(self) -> None:
        self.api = Api(now=lambda: datetime.now(UTC))
        self.server = WatchedApiServer(self.api)
        self.node = SmallNode(self.server)
        self.operator = OperatorThread(SETTINGS)
        self.api.put(NAMESPACES.path(None, NAMESPACE), {"kind": "Namespace", "metadata": {"name": NAMESPACE}})

    # What users do

    def create(self, name: str, spec: Json | None = None, *, kind: Kind = SANDBOX) -> None:
        names = {each: name for name, each in BY_NAME.items()}
        metadata = {"name": name} if kind is POLICY else {"name": name, "namespace": NAMESPACE}
        body = {"apiVersion": API_VERSION, "kind": names[kind], "metadata": metadata}
        self.api.put(path(name, kind), {**body, "spec": spec or {}})

    def change(self, name: str, spec: Json, *, kind: Kind = SANDBOX) -> None:
        self.api.change(path(name, kind), {"spec": spec})

    def delete(self, name: str, *, kind: Kind = SANDBOX) -> None:
        self.api.vanish(path(name, kind))

    # What there is

    def phase(self, name: str) -> str:
        """`Running` only when it is said of the pod that there is."""
        status = section(self.api.objects[path(name)], "status")
        pod = self.api.objects.get(path(name, POD))
        if status.get("phase") == "Running" and (pod is None or uid_of(pod) != status["podUID"]):
            return ""
        return status.get("phase", "")

    def all_run(self, *, but: str = "") -> bool:
        boxes = [key_of(each).name for each in self.api.objects.values() if each["kind"] == "Sandbox"]
        return all(self.phase(name) == "Running" for name in boxes if name != but)

    def picture(self) -> Json:
        """By path. An object's UID in it is that object's path; of one that is gone, nobody's."""
        owners = {uid_of(each): path for path, each in self.api.objects.items()}
        found = Json()
        for path, obj in self.api.objects.items():
            if obj["kind"] in ("Event", "Secret"):
                continue
            metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
            text = PASSING.sub("-", json.dumps({**obj, "metadata": metadata}, sort_keys=True))
            found[path] = json.loads(UID.sub(lambda uid: owners.get(uid[0], "nobody"), text))
        return found

    def made(self, *, since: int = 0) -> Counter[str]:
        """How often each object was made, since then."""
        told = [obj for event, obj in self.api.log[since:] if event == "ADDED" and obj["kind"] != "Event"]
        return Counter(f"{obj['kind']} {key_of(obj).name}" for obj in told)

    def writes(self, *, since: int = 0) -> list[str]:
        """What the operator has called, but for events."""
        return [call for call in self.api.calls[since:] if call.startswith(WRITES) and "/events" not in call]

    async def until(self, condition: Callable[[], bool], *, seconds: float = 60) -> None:
        """The operator may take so long, and must not end."""
        async with asyncio.timeout(seconds):
            while not condition():
                assert not self.operator.ended, self.operator.error
                await asyncio.sleep(0.01)

    async def quiet(self) -> None:
        """Nothing is written for as long as the resync looks a few times whether all is still there."""
        looks, writes = self._looks(), len(self.writes())
        await self.until(lambda: self._looks() >= looks + 4)
        assert len(self.writes()) == writes, self.writes()[writes:]

    def _looks(self) -> int:
        """The namespace is one of those that it asks for by name, each time."""
        return self.api.calls.count(f"GET {NAMESPACES.path(None, NAMESPACE)}")


def path(name: str, kind: Kind = SANDBOX) -> str:
    return kind.path(None if kind is POLICY else NAMESPACE, name)


@contextlib.asynccontextmanager
async def watched_cluster(directory: Path, patch: pytest.MonkeyPatch) -> AsyncGenerator[WatchedCluster]:
    """With the operator in it, whose resync waits less than it does elsewhere."""
    cluster = WatchedCluster()
    await cluster.server.start()
    await cluster.node.start()
    config = directory / f"{cluster.server.port}.kubeconfig"
    cluster.server.write_kubeconfig(config)
    patch.setenv("KUBECONFIG", str(config))
    patch.setenv("no_proxy", "127.0.0.1")
    # Not at ports that a whole machine has but one of
    patch.setattr("sandpod_operator.app.serve", partial(health.serve, port=0))
    patch.setattr("sandpod_operator.runtime_client.pod_address", cluster.node.where)
    patch.setattr("sandpod_operator.resync.RELISTED", 0.1)
    patch.setattr("sandpod_operator.resync.GRACE", 0.1)
    cluster.operator.start()
    try:
        yield cluster
    finally:
        await cluster.operator.stop()
        await cluster.node.close()
        await cluster.server.close()
