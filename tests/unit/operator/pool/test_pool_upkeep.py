"""How a pool keeps its pods: failures, changes of the template, scaling."""

from sandpod_crds.errors import Forbidden, Unavailable
from sandpod_operator.objects import Json, uid_of

from tests.support.operator_node import crash_it, run_it, strand_it
from tests.support.operator_world import CLAIMS_PATH, World
from tests.support.pool_world import (
    PODS_PATH,
    POOL_PATH,
    TEMPLATE_PATH,
    calls_about,
    claimed_by,
    condition,
    filled,
    pods,
    put_pool,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")


async def test_a_template_that_crashes_is_no_hot_loop() -> None:
    world = World()
    world.kubelet = crash_it
    put_pool(world, replicas=10)

    await world.wait(600)

    # Four at a time, about once a minute.
    assert len(calls_about(world, "POST", "pods")) <= 4 * 11
    assert condition(world, "Ready") == ("False", "PodsFail")

    world.kubelet = run_it
    await world.wait(90)
    assert condition(world, "Ready") == ("True", "AllReady")


async def test_pods_that_their_node_never_brings_to_run_are_replaced() -> None:
    world = World()
    stranded: set[str] = set()

    def strand_the_first(world: World, pod: Json) -> None:
        if len(stranded) < 4:
            stranded.add(uid_of(pod))
        strand = uid_of(pod) in stranded
        (strand_it if strand else run_it)(world, pod)

    world.kubelet = strand_the_first
    put_pool(world, replicas=4)
    await world.wait(600)
    assert condition(world, "Ready") == ("False", "Filling")

    await world.wait(600)

    assert condition(world, "Ready") == ("True", "AllReady")
    assert stranded.isdisjoint(uid_of(pod) for pod in waiting(world))


async def test_a_refused_pod_is_tried_ever_more_slowly() -> None:
    world = World()

    def forbid(number: int, call: str) -> None:
        if call == f"POST {PODS_PATH}":
            raise Forbidden(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q')

    world.api.before = forbid
    put_pool(world, replicas=10)
    await world.wait(3600)

    assert len(calls_about(world, "POST")) <= 20
    assert condition(world, "Ready") == ("False", "QuotaExceeded")


async def test_a_missing_template_is_a_condition_and_heals() -> None:
    world = World()
    put_pool(world)
    template = world.api.objects[TEMPLATE_PATH]
    world.api.vanish(TEMPLATE_PATH)
    await world.settle()
    assert condition(world, "TemplateFound") == ("False", "NotFound")
    assert pods(world) == []

    world.api.put(TEMPLATE_PATH, template)
    await world.wait(2)
    assert condition(world, "Ready") == ("True", "AllReady")


async def test_a_changed_template_replaces_the_waiting_pods_and_leaves_the_claimed_ones() -> None:
    world = await filled(World(), replicas=4)
    put_sandbox(world)
    await world.settle()
    await world.wait(3)
    mine = claimed_by(world)[0]["metadata"]["uid"]

    world.api.change(TEMPLATE_PATH, {"spec": {"image": "new:1"}})
    await world.wait(10)

    assert {pod["spec"]["containers"][0]["image"] for pod in waiting(world)} == {"new:1"}
    assert condition(world, "Ready") == ("True", "AllReady")
    assert claimed_by(world)[0]["metadata"]["uid"] == mine


async def test_scaling_down_and_up_and_deleting() -> None:
    world = await filled(World(), replicas=3)
    put_sandbox(world)
    await world.settle()

    world.api.change(POOL_PATH, {"spec": {"replicas": 0}})
    await world.wait(3)
    assert waiting(world) == []
    world.api.change(POOL_PATH, {"spec": {"replicas": 5}})
    await world.wait(3)
    assert len(waiting(world)) == 5
    world.api.vanish(POOL_PATH)
    await world.settle()
    assert waiting(world) == []
    assert ready(world) == RUNNING


async def test_a_pool_whose_deletion_the_watch_did_not_tell_makes_no_pods_for_ever() -> None:
    world = World()
    put_pool(world, replicas=1, template={"image": "python:3"})
    put_sandbox(world)
    await world.settle()
    world.api.vanish(POOL_PATH)
    world.list_again()
    await world.wait(60)

    assert waiting(world) == []
    assert len([call for call in world.api.calls if call == f"POST {PODS_PATH}"]) <= 4


async def test_the_volumes_of_pods_that_are_given_up_go_too() -> None:
    world = await filled(World(), replicas=3, template={"workspace": {"size": "1Gi"}})

    world.api.change(POOL_PATH, {"spec": {"replicas": 1}})
    await world.wait(3)

    assert len([path for path in world.api.objects if "persistentvolumeclaims" in path]) == 1


async def test_a_pod_whose_volume_somebody_deletes_before_it_has_a_node_is_replaced() -> None:
    world = World()
    world.has_volumes = False
    put_pool(world, replicas=1, template={"workspace": {"size": "1Gi"}})
    await world.wait(5)
    before = pods(world)[0]["metadata"]["name"]
    world.api.vanish(f"{CLAIMS_PATH}/{before}-workspace")
    world.has_volumes = True
    await world.wait(5)

    assert condition(world, "Ready") == ("True", "AllReady")
    assert before not in [pod["metadata"]["name"] for pod in pods(world)]


async def test_warm_pods_that_the_garbage_collector_has_orphaned_go_though_their_pool_is_gone() -> None:
    world = await filled(World(), replicas=3)
    put_sandbox(world)
    await world.settle()

    for pod in waiting(world):
        world.api.change(f"{PODS_PATH}/{pod['metadata']['name']}", {"metadata": {"ownerReferences": []}})
    world.api.vanish(POOL_PATH)
    await world.wait(60)

    assert pods(world) == claimed_by(world) != []


async def test_a_pool_that_is_to_leave_its_pods_behind_takes_those_along_that_nobody_has_claimed() -> None:
    world = await filled(World(), replicas=3)
    put_sandbox(world)
    await world.settle()

    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["orphan"]}
    world.api.change(POOL_PATH, {"metadata": going})
    await world.wait(60)

    assert pods(world) == claimed_by(world) != []
    assert ready(world) == RUNNING


async def test_passes_over_pools_are_counted_apart_from_those_over_sandboxes() -> None:
    world = World()
    put_pool(world)

    def refuse(number: int, call: str) -> None:
        if number == 1:
            raise Unavailable(500, "InternalError", "no leader")

    world.api.before = refuse
    await world.settle()
    await world.wait(10)
    of_pools, of_sandboxes = world.metrics.pool_passes, world.metrics.sandbox_passes

    assert of_pools.begun.value() > 1
    assert of_pools.seconds.count() == of_pools.begun.value()
    assert of_pools.failures.value(reason="Unavailable") == of_pools.failures.value() == 1
    assert of_sandboxes.failures.value() == 0


async def test_in_a_burst_of_claims_a_pool_refills_now_and_then_and_wholly_after_it() -> None:
    world = await filled(World(), replicas=40)
    # Long after the last start.
    await world.wait(20)
    for second in range(7):
        for number in range(5):
            put_sandbox(world, f"box-{second}-{number}")
        await world.wait(0.9)

    # At the first claims nobody knows that there will be more.
    assert 1 <= len(calls_about(world, f"POST {PODS_PATH}")) <= 5
    assert len(waiting(world)) >= 40 - 35
    await world.wait(30)
    assert len(waiting(world)) == 40
