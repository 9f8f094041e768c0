"""Ways through a sandbox's life, as its user and its cluster go them. Between two steps there is time enough
for whatever went wrong to be put right.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from sandpod_crds.names import GROUP
from sandpod_operator.objects import Json

from tests.support.operator_node import crash_it, hold_it, run_it
from tests.support.operator_world import SANDBOX_PATH, World, new_sandbox

Scenario = Callable[[World], Awaitable[None]]

TEMPLATE_PATH = f"/apis/{GROUP}/v1alpha1/namespaces/team/sandboxtemplates/python"
VOLUME: Json = {"workspace": {"size": "1Gi"}}
PORTS: Json = {"ports": [{"port": 8080, "name": "web"}]}
# Longer than a burst of errors, its pauses and a watch that is cut off take.
WHILE = 40.0


async def create(world: World, spec: Json | None = None) -> None:
    world.api.put(SANDBOX_PATH, new_sandbox(spec))
    await world.wait(WHILE)


async def with_workspace() -> World:
    world = World()
    await create(world, VOLUME)
    assert world.ready() == ("Running", "True", "RuntimeAnswers")
    return world


async def change(world: World, **fields: Any) -> None:
    world.api.change(SANDBOX_PATH, {"spec": fields})
    await world.wait(WHILE)


async def fall_asleep(world: World) -> None:
    world.fall_asleep(world.status["podUID"])
    await world.wait(WHILE)


async def wake(world: World, request: str = "first") -> None:
    world.ask_awake(request)
    await world.wait(WHILE)


async def cold_start(world: World) -> None:
    await create(world)


async def pod_deleted_by_hand(world: World) -> None:
    await create(world)
    await world.wait(100)
    world.api.change(pod_path(world), {"metadata": {"deletionTimestamp": "2026-11-18T12:10:00Z"}})
    await world.wait(WHILE)


async def crash_at_start(world: World) -> None:
    world.kubelet = crash_it
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.settle()
    world.kubelet = run_it
    await world.wait(100)


async def crash_of_a_running_sandbox(world: World) -> None:
    await create(world)
    await world.wait(100)
    crash_it(world, world.api.objects[pod_path(world)])
    await world.wait(WHILE)


async def node_gone(world: World) -> None:
    await create(world)
    await world.wait(100)
    world.api.vanish(pod_path(world))
    await world.wait(WHILE)


async def image_corrected(world: World) -> None:
    world.kubelet = hold_it
    await create(world, {"image": "wrong:1"})
    world.kubelet = run_it
    await change(world, image="right:1")


async def deleted_and_made_again(world: World) -> None:
    await create(world)
    world.api.vanish(SANDBOX_PATH)
    await create(world, {"image": "second:1"})


async def sleep_and_wake(world: World) -> None:
    await create(world)
    await fall_asleep(world)
    await wake(world)


async def asleep_for_good(world: World) -> None:
    await create(world, VOLUME)
    await fall_asleep(world)


async def woken_while_it_runs(world: World) -> None:
    await create(world)
    await wake(world)


async def wanted_while_it_falls_asleep(world: World) -> None:
    """The request comes when the runtime has decided and its end is not seen yet."""
    await create(world)
    world.runtimes[world.status["podUID"]].draining = True
    await wake(world)
    await fall_asleep(world)


async def paused_and_resumed(world: World) -> None:
    await create(world)
    await change(world, paused=True)
    await change(world, paused=False)


async def paused_for_good(world: World) -> None:
    await create(world)
    await wake(world)
    await change(world, paused=True)
    await wake(world, "second")


async def workspace_and_setup(world: World) -> None:
    await create(world, {**VOLUME, "setup": ["make"]})
    await fall_asleep(world)
    await wake(world)


async def workspace_grown(world: World) -> None:
    await create(world, VOLUME)
    await change(world, workspace={"size": "2Gi"})


async def workspace_retained(world: World) -> None:
    await create(world, VOLUME)
    await change(world, workspace={"size": "1Gi", "reclaim": "Retain"})
    world.api.vanish(SANDBOX_PATH)
    await create(world, VOLUME)


async def keep_alive_toggled(world: World) -> None:
    await create(world)
    await change(world, keepAlive=True)
    await change(world, keepAlive=False, sleepAfter="5m")


async def ports_exposed_and_rotated(world: World) -> None:
    await create(world, PORTS)
    await change(world, ports=[{"port": 8080, "tokenVersion": 2}, {"port": 9000}])
    await fall_asleep(world)
    await change(world, ports=[{"port": 9000}])


async def exposed_and_deleted(world: World) -> None:
    await create(world, PORTS)
    world.api.vanish(SANDBOX_PATH)
    await world.wait(WHILE)


async def network_changed(world: World) -> None:
    await create(world)
    await change(world, network={"egress": "None"})


async def template_changed(world: World) -> None:
    template = {"name": "python", "namespace": "team"}
    world.api.put(
        TEMPLATE_PATH, {"kind": "SandboxTemplate", "metadata": template, "spec": {"image": "python:3"}}
    )
    await create(world, {"templateRef": {"name": "python"}})
    world.api.change(TEMPLATE_PATH, {"spec": {"image": "python:4"}})
    await world.wait(WHILE)
    await fall_asleep(world)
    await wake(world)


async def too_old(world: World) -> None:
    await create(world, {**VOLUME, "lifetime": {"maxAge": "100s"}})
    await world.wait(100)


async def asleep_too_long(world: World) -> None:
    await create(world, {"lifetime": {"deleteAfterAsleep": "100s"}})
    await fall_asleep(world)
    await world.wait(100)


LIVES: tuple[Scenario, ...] = (
    cold_start,
    pod_deleted_by_hand,
    crash_at_start,
    crash_of_a_running_sandbox,
    node_gone,
    image_corrected,
    deleted_and_made_again,
    sleep_and_wake,
    asleep_for_good,
    woken_while_it_runs,
    wanted_while_it_falls_asleep,
    paused_and_resumed,
    paused_for_good,
    workspace_and_setup,
    workspace_grown,
    workspace_retained,
    keep_alive_toggled,
    ports_exposed_and_rotated,
    exposed_and_deleted,
    network_changed,
    template_changed,
    too_old,
    asleep_too_long,
)


def pod_path(world: World) -> str:
    return f"/api/v1/namespaces/team/pods/{world.status['podName']}"


def children(world: World) -> list[str]:
    """What there is of the sandbox, or left of it, by kind and name."""
    return sorted(
        "/".join(path.split("/")[-2:])
        for path, obj in world.api.objects.items()
        if obj["kind"] in ("Pod", "PersistentVolumeClaim", "NetworkPolicy")
    )


def hosts(world: World) -> list[str]:
    """That requests are let in by, of whatever sandbox."""
    ingresses = [obj for obj in world.api.objects.values() if obj["kind"] == "Ingress"]
    return sorted(rule["host"] for each in ingresses for rule in each["spec"]["rules"])


def exposed_hosts(sandbox: Json) -> list[str]:
    """As its status says."""
    urls = [port["url"] for port in sandbox.get("status", {}).get("ports", [])]
    return sorted(url.removeprefix("http://").removesuffix("/") for url in urls)


def outcome(world: World, *, counters: bool) -> Json:
    """What a user sees in the end, without times and UIDs; and what it took, with `counters`."""
    seen: Json = {"children": children(world)}
    if SANDBOX_PATH not in world.api.objects:
        assert hosts(world) == []
        return seen
    status = world.status
    assert hosts(world) == exposed_hosts(world.sandbox)
    pods = [o for o in world.api.objects.values() if o["kind"] == "Pod"]
    assert [pod["metadata"]["uid"] for pod in pods] == ([status["podUID"]] if "podUID" in status else [])
    names = [
        "phase",
        "image",
        "podName",
        "podIP",
        "runtimeVersion",
        "sleepAfter",
        "sleepReason",
        "workspaceClaim",
        "wakeObserved",
        "nextStartAt",
        "observedGeneration",
        *(["restarts", "startFailures", "wakes", "specHash"] if counters else []),
    ]
    conditions = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
    told = [runtime.sleep_after for uid, runtime in world.runtimes.items() if uid == status.get("podUID")]
    ports = [(port["port"], port["tokenVersion"]) for port in status.get("ports", [])]
    return {
        **seen,
        "ports": ports,
        "conditions": conditions,
        "told": told,
        **{name: status.get(name) for name in names},
    }
