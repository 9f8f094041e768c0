"""A pool, its template and its pods, as the API server has them, for tests of warm pools."""

from datetime import datetime, timedelta
from typing import Any

from sandpod_crds.models import SandboxPool, SandboxSpec
from sandpod_operator.objects import Json
from sandpod_operator.observations import Key
from sandpod_operator.pool.decide import PoolLimits, PoolSituation
from sandpod_operator.pool.pod import Blueprint, blueprint
from sandpod_operator.pool.warm import WarmPod, warm_pod

from tests.support.operator_objects import INSTALLATION, NOW, at, up

POOL_KEY = Key("team", "python")
POOL_UID = "b00b0001-0000-4000-8000-000000000001"
LIMITS = PoolLimits(most_starting=4, start_timeout=60)


def pool(replicas: int = 2, *, status: Json | None = None, **fields: Any) -> SandboxPool:
    spec = {"replicas": replicas, "templateRef": {"name": "python"}, **fields}
    metadata = {
        "name": POOL_KEY.name,
        "namespace": POOL_KEY.namespace,
        "uid": POOL_UID,
        "generation": 1,
        "resourceVersion": "10",
    }
    return SandboxPool.model_validate({"metadata": metadata, "spec": spec, "status": status or {}})


def plan(spec: Json | None = None) -> Blueprint:
    """Of the template with this spec."""
    return blueprint(pool(), spec=SandboxSpec.model_validate(spec or {}), installation=INSTALLATION)


def waiting_pod(
    name: str = "python-aaaaa", *, template: Json | None = None, status: Json | None = None, **metadata: Any
) -> Json:
    """A pod of the pool, made from this template; ready for 60 seconds unless `status` says otherwise."""
    made = plan(template).start(name).pod
    made["metadata"] |= {
        "uid": f"uid-of-{name}",
        "resourceVersion": "20",
        "creationTimestamp": at(-70),
        **metadata,
    }
    made["status"] = status if status is not None else ready()
    return made


def ready(*, since: float = -60, **conditions: str) -> Json:
    status = up(since=since - 1)
    for condition in status["conditions"]:
        condition["lastTransitionTime"] = at(since)
        condition["status"] = conditions.get(condition["type"], condition["status"])
    return status


def starting(*, since: float = -3) -> Json:
    return ready(since=since, Ready="False", ContainersReady="False")


def ended(*, after: float = 5) -> Json:
    """So many seconds after its creation."""
    state = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": at(-70 + after), "message": "no"}}
    return {"phase": "Failed", "containerStatuses": [{"name": "sandbox", "state": state}]}


def warm(name: str = "python-aaaaa", **given: Any) -> WarmPod:
    return warm_pod(waiting_pod(name, **given))


def situation(*pods: WarmPod, **given: Any) -> PoolSituation:
    fields: dict[str, Any] = {"pool": pool(), "blueprint": plan(), "fenced": True, **given}
    return PoolSituation(key=POOL_KEY, pods=pods, **fields)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)
