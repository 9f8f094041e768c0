"""A volume that only the pods of another node can mount: the sandbox says so, waits at little cost, and goes
on when such a node is there.
"""

from sandpod_operator.objects import Json, entries, uid_of

from tests.support.operator_node import run_it
from tests.support.operator_scenarios import VOLUME, create, fall_asleep, wake
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World

CONFLICT = (
    "0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 node(s) were unschedulable."
)
HOUR = 3600.0


def find_no_node(world: World, pod: Json) -> None:
    """As the scheduler says it, each time that it has tried."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": CONFLICT}
    if entries(pod["status"], "conditions") != [said]:
        world.api.change(POD_PATH, {"status": {"conditions": [said]}})


async def woken_far_from_its_volume() -> World:
    world = World()
    await create(world, VOLUME)
    await fall_asleep(world)
    world.kubelet = find_no_node
    await wake(world)
    return world


async def test_a_volume_on_a_node_that_takes_no_pod_is_a_clear_condition() -> None:
    world = await woken_far_from_its_volume()

    assert world.ready() == ("Pending", "False", "VolumeElsewhere")
    ready = next(each for each in world.status["conditions"] if each["type"] == "Ready")
    assert "volume node affinity conflict" in ready["message"]
    assert world.events.count("VolumeElsewhere") == 1


async def test_while_it_waits_for_a_node_it_costs_nothing_also_after_a_restart() -> None:
    world = await woken_far_from_its_volume()
    waiting = uid_of(world.pod)
    world.api.calls.clear()
    await world.wait(HOUR)
    world.boot()
    await world.wait(HOUR)

    assert world.api.calls == []
    assert uid_of(world.pod) == waiting


async def test_it_goes_on_with_its_files_when_the_node_is_back() -> None:
    world = await woken_far_from_its_volume()
    world.kubelet = run_it
    await world.settle()

    assert world.ready() == ("Running", "True", "RuntimeAnswers")
    assert "startFailures" not in world.status


async def test_a_pod_that_somebody_deletes_to_try_again_is_made_again_ever_more_slowly() -> None:
    world = await woken_far_from_its_volume()

    def delete_it(world: World, pod: Json) -> None:
        if "deletionTimestamp" not in pod["metadata"]:
            find_no_node(world, pod)
            world.api.vanish(POD_PATH)

    world.kubelet = delete_it
    world.api.calls.clear()
    await world.wait(HOUR)

    assert world.busiest_minute() <= 60
    assert len(world.api.calls) <= HOUR / 60 * 6
    world.kubelet = run_it
    await world.wait(400)
    assert world.api.objects[SANDBOX_PATH]["status"]["phase"] == "Running"
