"""What the kernel, a node, a stuck runtime and people do to a sandbox that runs, each a scenario."""

from datetime import timedelta

from sandpod_crds.names import LABEL_MANAGED_BY
from sandpod_operator.times import format_time

from tests.support.operator_node import evict_it, kill_it, silence_it
from tests.support.operator_scenarios import VOLUME, WHILE, Scenario, change, create, pod_path, wake
from tests.support.operator_world import World


async def out_of_memory(world: World) -> None:
    await create(world)
    await world.wait(100)
    kill_it(world, world.api.objects[pod_path(world)])
    await world.wait(WHILE)


async def evicted(world: World) -> None:
    await create(world)
    await world.wait(100)
    evict_it(world, world.api.objects[pod_path(world)])
    await world.wait(WHILE)


async def drained_while_it_serves(world: World) -> None:
    await create(world, {"keepAlive": True})
    await drain(world)


async def drained_while_nobody_works(world: World) -> None:
    await create(world)
    world.runtimes[world.status["podUID"]].quiet_for = timedelta(minutes=5)
    await drain(world)
    await wake(world)


async def drain(world: World) -> None:
    """Its pod is evicted, and takes some of its grace period to end."""
    await world.wait(100)
    path = pod_path(world)
    reason = {"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}
    conditions = [*world.api.objects[path]["status"]["conditions"], reason]
    due = format_time(world.now() + timedelta(seconds=30))
    world.api.change(
        path,
        {
            "metadata": {"deletionTimestamp": due, "finalizers": ["example.com/grace"]},
            "status": {"conditions": conditions},
        },
    )
    await world.wait(20)
    world.api.change(path, {"metadata": {"finalizers": None}})
    await world.wait(WHILE)


async def silent_node(world: World) -> None:
    """The node controller gives its pods up, which nobody can end any more."""
    await create(world)
    await fall_silent(world)


async def silent_node_with_files(world: World) -> None:
    """They are safe once somebody has said that the node is gone."""
    await create(world, VOLUME)
    path = pod_path(world)
    await fall_silent(world)
    world.api.vanish(path)
    await world.wait(WHILE)


async def fall_silent(world: World) -> None:
    await world.wait(100)
    path = pod_path(world)
    silence_it(world, world.api.objects[path])
    await world.wait(WHILE)
    due = format_time(world.now() + timedelta(seconds=30))
    world.api.change(path, {"metadata": {"deletionTimestamp": due}})
    await world.wait(100)


async def paused_with_a_stuck_runtime(world: World) -> None:
    await create(world)
    del world.runtimes[world.status["podUID"]]
    await change(world, paused=True)
    await world.wait(200)


async def labels_taken_off(world: World) -> None:
    """By which its objects are watched: for the operator, they are gone."""
    await create(world, VOLUME)
    for path in paths_of_children(world):
        world.api.change(path, {"metadata": {"labels": {LABEL_MANAGED_BY: None}}})
    await world.wait(WHILE)


async def owner_taken_off(world: World) -> None:
    """A pod that is nobody's is not touched, until its owner has followed what the sandbox says of it."""
    await create(world, VOLUME)
    pod = pod_path(world)
    for path in paths_of_children(world):
        world.api.change(path, {"metadata": {"ownerReferences": []}})
    await world.wait(WHILE)
    world.api.vanish(pod)
    await world.wait(WHILE)


def paths_of_children(world: World) -> list[str]:
    kinds = ("Pod", "PersistentVolumeClaim", "NetworkPolicy")
    return [path for path, obj in world.api.objects.items() if obj["kind"] in kinds]


LOSSES: tuple[Scenario, ...] = (
    out_of_memory,
    evicted,
    drained_while_it_serves,
    drained_while_nobody_works,
    silent_node,
    silent_node_with_files,
    paused_with_a_stuck_runtime,
    labels_taken_off,
    owner_taken_off,
)
