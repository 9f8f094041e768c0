"""Pools in the cluster in memory: what people put there, and what there is."""

from typing import Any

from sandpod_crds.names import GROUP, LABEL_POOL_UID
from sandpod_operator.objects import Json, controller, section, uid_of
from sandpod_operator.observations import Key

from tests.support.operator_world import World, new_sandbox

OURS = f"/apis/{GROUP}/v1alpha1/namespaces/team"
TEMPLATE_PATH = f"{OURS}/sandboxtemplates/python"
POOL_PATH = f"{OURS}/sandboxpools/python"
PODS_PATH = "/api/v1/namespaces/team/pods"


def put_pool(world: World, *, replicas: int = 2, template: Json | None = None, **spec: Any) -> None:
    world.api.put(
        TEMPLATE_PATH,
        {
            "kind": "SandboxTemplate",
            "metadata": {"name": "python", "namespace": "team"},
            "spec": template or {},
        },
    )
    put_pool_alone(world, replicas=replicas, **spec)


def put_pool_alone(world: World, *, replicas: int, **spec: Any) -> None:
    """Of a template that is there."""
    world.api.put(
        POOL_PATH,
        {
            "kind": "SandboxPool",
            "metadata": {"name": "python", "namespace": "team"},
            "spec": {"replicas": replicas, "templateRef": {"name": "python"}, **spec},
        },
    )


def put_sandbox(world: World, name: str = "box", spec: Json | None = None) -> str:
    """One of the pool."""
    path = f"{OURS}/sandboxes/{name}"
    sandbox = new_sandbox({"poolRef": {"name": "python"}, **(spec or {})})
    sandbox["metadata"]["name"] = name
    world.api.put(path, sandbox)
    return path


async def filled(world: World, **pool: Any) -> World:
    """A pool whose pods are warm, and nothing left to do."""
    put_pool(world, **pool)
    await world.settle()
    await world.wait(2)
    assert condition(world, "Ready") == ("True", "AllReady")
    world.api.calls.clear()
    return world


def pool_status(world: World) -> Json:
    return section(world.api.objects[POOL_PATH], "status")


def condition(world: World, kind: str) -> tuple[str, str]:
    found = next(each for each in pool_status(world)["conditions"] if each["type"] == kind)
    return found["status"], found["reason"]


def pods(world: World) -> list[Json]:
    return [obj for path, obj in sorted(world.api.objects.items()) if path.startswith(f"{PODS_PATH}/")]


def waiting(world: World) -> list[Json]:
    """The pods that nobody has claimed."""
    return [pod for pod in pods(world) if controller(pod["metadata"]).get("kind") == "SandboxPool"]


def claimed_by(world: World, name: str = "box") -> list[Json]:
    """The pods of this sandbox that a pool has made."""
    owner = uid_of(world.api.objects[f"{OURS}/sandboxes/{name}"])
    mine = [pod for pod in pods(world) if controller(pod["metadata"]).get("uid") == owner]
    return [pod for pod in mine if LABEL_POOL_UID in pod["metadata"]["labels"]]


def pod_of(world: World, name: str = "box") -> Json:
    """The pod that the sandbox's status names, whether or not it says so itself."""
    uid = section(world.api.objects[f"{OURS}/sandboxes/{name}"], "status")["podUID"]
    return next(pod for pod in pods(world) if uid_of(pod) == uid)


def ready(world: World, name: str = "box") -> tuple[str, str]:
    status = section(world.api.objects[f"{OURS}/sandboxes/{name}"], "status")
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    return status.get("phase", ""), conditions["Ready"]["reason"] if "Ready" in conditions else ""


def calls_about(world: World, *parts: str) -> list[str]:
    return [call for call in world.api.calls if all(part in call for part in parts)]


def key_of_pod(pod: Json) -> Key:
    return Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
