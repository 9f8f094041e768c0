"""What becomes of a pod on the node of a cluster in memory: a test chooses which."""

from typing import TYPE_CHECKING

from sandpod_crds.names import SANDBOX_CONTAINER
from sandpod_operator.objects import Json, entries, section, uid_of
from sandpod_operator.times import format_time

from tests.support.operator_runtime import Runtime

if TYPE_CHECKING:
    from tests.support.operator_world import World


def assign(world: "World", pod: Json, status: Json) -> None:
    path = path_of(pod)
    world.api.objects[path]["metadata"].setdefault("generation", 1)
    world.api.change(path, {"spec": {"nodeName": "node-1"}, "status": status})


def run_it(world: "World", pod: Json) -> None:
    """The usual: the container runs, and the runtime in it listens."""
    now = format_time(world.now())
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "ContainersReady", "Ready")
    ]
    state = {"running": {"startedAt": now}}
    status = {"phase": "Running", "podIP": "10.1.0.7", "containerStatuses": container(pod, state)}
    assign(world, pod, {**status, "conditions": conditions})
    world.runtimes[uid_of(pod)] = Runtime()


def strand_it(world: "World", pod: Json) -> None:
    """It gets a node, which never makes its container and does not say why."""
    if not section(pod, "spec").get("nodeName"):
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(world.now())}
        state = {"waiting": {"reason": "ContainerCreating"}}
        containers = container(pod, state)
        assign(world, pod, {"phase": "Pending", "conditions": [condition], "containerStatuses": containers})


def run_it_deaf(world: "World", pod: Json) -> None:
    """The container runs, and nothing in it ever answers."""
    state = {"running": {"startedAt": format_time(world.now())}}
    assign(world, pod, {"phase": "Running", "podIP": "10.1.0.7", "containerStatuses": container(pod, state)})


def crash_it(world: "World", pod: Json) -> None:
    state = {"terminated": {"exitCode": 1, "reason": "Error", "message": "no such option"}}
    assign(world, pod, {"phase": "Failed", "podIP": "10.1.0.7", "containerStatuses": container(pod, state)})


def kill_it(world: "World", pod: Json) -> None:
    """The kernel, because its memory is full."""
    world.runtimes.pop(uid_of(pod), None)
    state = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    assign(world, pod, {"phase": "Failed", "podIP": "10.1.0.7", "containerStatuses": container(pod, state)})


def evict_it(world: "World", pod: Json) -> None:
    """The kubelet, because its node is short of something."""
    world.runtimes.pop(uid_of(pod), None)
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
    status: Json = {**evicted, "containerStatuses": []}
    world.api.change(path_of(pod), {"status": status})


def silence_it(world: "World", pod: Json) -> None:
    """Its node is heard of no more, as the node controller says it; nobody ends what runs there."""
    world.silent.add(uid_of(pod))
    kept = [each for each in entries(pod["status"], "conditions") if each["type"] != "Ready"]
    gone = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(world.now())}
    world.api.change(path_of(pod), {"status": {"conditions": [*kept, gone]}})


def hold_it(world: "World", pod: Json) -> None:
    """The image cannot be pulled."""
    if pod["status"].get("containerStatuses"):
        return
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    world.api.change(path_of(pod), {"status": {"containerStatuses": container(pod, state)}})


def container(pod: Json, state: Json) -> list[Json]:
    return [{"name": SANDBOX_CONTAINER, "image": pod["spec"]["containers"][0]["image"], "state": state}]


def path_of(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
