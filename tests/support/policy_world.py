"""A cluster in memory whose platform team has a SandboxPolicy."""

from typing import Any

from sandpod_operator.objects import Json, entries

from tests.support.operator_objects import KEY
from tests.support.operator_world import SANDBOX_PATH, World, new_sandbox

POLICY_PATH = "/apis/sandpod.dev/v1alpha1/sandboxpolicies/limits"
NAMESPACE_PATH = f"/api/v1/namespaces/{KEY.namespace}"
RUNNING = ("Running", "True", "RuntimeAnswers")
REFUSED = ("Pending", "False", "PolicyExceeded")


def policy(**spec: Any) -> Json:
    return {"kind": "SandboxPolicy", "metadata": {"name": "limits"}, "spec": spec}


def namespace(**labels: str) -> Json:
    return {"kind": "Namespace", "metadata": {"name": KEY.namespace, "labels": labels}}


async def world_with(rules: Json, spec: Json | None = None, **labels: str) -> World:
    world = World()
    world.api.put(NAMESPACE_PATH, namespace(**labels))
    world.api.put(POLICY_PATH, policy(**rules))
    world.api.put(SANDBOX_PATH, new_sandbox(spec))
    await world.settle()
    return world


def condition(world: World, kind: str) -> tuple[str, str, str]:
    found = next(each for each in entries(world.status, "conditions") if each["type"] == kind)
    return found["status"], found["reason"], found["message"]
