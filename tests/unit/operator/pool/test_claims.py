"""A sandbox takes a warm pod, in the cluster in memory: what it costs, and when it gets none."""

import pytest
from sandpod_crds.errors import Forbidden
from sandpod_operator.objects import Json

from tests.support.operator_node import hold_it, run_it
from tests.support.operator_world import World
from tests.support.pool_world import (
    PODS_PATH,
    POOL_PATH,
    calls_about,
    claimed_by,
    condition,
    filled,
    pool_status,
    put_pool,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")


async def test_a_claim_costs_one_patch_of_the_pod_and_one_of_the_status() -> None:
    world = await filled(World())

    path = put_sandbox(world)
    await world.settle()

    assert ready(world) == RUNNING
    pod = claimed_by(world)[0]["metadata"]["name"]
    assert calls_about(world, pod) == [f"PATCH {PODS_PATH}/{pod}"]
    assert calls_about(world, "sandboxes/") == [f"PATCH {path}/status"]
    assert calls_about(world, "/events") == []
    status = world.status
    assert (status["podName"], status["pool"]) == (pod, "python")


async def test_a_claimed_pod_is_the_sandboxs_by_owner_and_labels() -> None:
    world = await filled(World())
    put_sandbox(world)
    await world.settle()

    metadata = claimed_by(world)[0]["metadata"]

    assert [owner["kind"] for owner in metadata["ownerReferences"]] == ["Sandbox"]
    assert metadata["labels"]["sandpod.dev/sandbox-uid"] == world.sandbox["metadata"]["uid"]
    assert metadata["labels"]["app.kubernetes.io/instance"] == "box"
    assert metadata["labels"]["sandpod.dev/protected"] == "true"
    # Behind the pool's wall
    assert metadata["labels"]["sandpod.dev/network"].startswith(pool_uid(world))


async def test_the_pool_fills_up_again_and_counts() -> None:
    world = await filled(World())

    put_sandbox(world)
    await world.settle()
    await world.wait(3)

    status = pool_status(world)
    assert len(waiting(world)) == 2
    assert (status["replicas"], status["readyReplicas"], status["claimed"]) == (2, 2, 1)


async def test_a_converged_pool_costs_nothing_however_often_it_is_looked_at() -> None:
    world = await filled(World())

    for _ in range(3):
        world.pool_queue.add(next(iter(world.store.pools)))
        await world.settle()
    await world.wait(3600)
    world.boot()
    await world.settle()

    assert world.api.calls == []


async def test_every_sandbox_gets_a_pod_of_its_own() -> None:
    world = await filled(World(), replicas=3)

    for name in ("one", "two", "three"):
        put_sandbox(world, name)
    await world.settle()

    names = [claimed_by(world, name)[0]["metadata"]["name"] for name in ("one", "two", "three")]
    assert len(set(names)) == 3
    assert [ready(world, name) for name in ("one", "two", "three")] == [RUNNING] * 3


async def test_an_empty_pool_is_followed_by_a_cold_start_and_says_so() -> None:
    world = World()
    world.kubelet = hold_it
    put_pool(world)
    await world.settle()
    put_sandbox(world)
    world.kubelet = lambda world, pod: run_it(world, pod) if pod["metadata"]["name"] == "box" else None
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"] == "box"
    assert "pool" not in world.status
    assert "PoolEmpty" in world.events
    assert world.metrics.claims.value(outcome="PoolEmpty") == 1


async def test_while_it_starts_cold_the_condition_says_why() -> None:
    world = World()
    put_pool(world, replicas=0)
    world.kubelet = lambda world, pod: None
    put_sandbox(world)
    await world.settle()

    assert ready(world) == ("Starting", "StartingCold")
    message = next(each for each in world.status["conditions"] if each["type"] == "Ready")["message"]
    assert message.startswith("The pod box is starting. The pool python has no pod that is ready;")


@pytest.mark.parametrize(
    "own",
    [
        {"image": "other:1"},
        {"resources": {"limits": {"memory": "4Gi"}}},
        {"isolation": "Strict"},
        {"nodeSelector": {"disk": "fast"}},
        {"workspace": {"size": "1Gi"}},
        {"podTemplate": {"metadata": {"labels": {"team": "red"}}}},
        {"env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
    ],
    ids=str,
)
async def test_a_sandbox_that_needs_another_pod_starts_cold(own: Json) -> None:
    world = await filled(World())

    put_sandbox(world, spec=own)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "PoolMismatch" in world.events
    assert len(waiting(world)) == 2


@pytest.mark.parametrize(
    "own",
    [
        {"env": [{"name": "A", "value": "b"}]},
        {"sleepAfter": "1h"},
        {"keepAlive": True},
        {"processes": [{"name": "web", "command": "serve"}]},
        {"lifetime": {"maxAge": "8h"}},
        {"network": {"egress": "Internet"}},
    ],
    ids=str,
)
async def test_what_comes_with_the_bind_does_not_keep_a_sandbox_from_a_warm_pod(own: Json) -> None:
    world = await filled(World())

    put_sandbox(world, spec=own)
    await world.settle()

    assert ready(world) == RUNNING
    assert len(claimed_by(world)) == 1
    assert len(calls_about(world, "sandboxes/")) == 1


async def test_min_ready_age_keeps_young_pods_from_being_claimed() -> None:
    world = World()
    put_pool(world, minReadyAge="30s")
    await world.settle()
    put_sandbox(world, "early")
    await world.settle()
    assert claimed_by(world, "early") == []

    await world.wait(31)
    assert condition(world, "Ready") == ("True", "AllReady")
    put_sandbox(world, "late")
    await world.settle()
    assert len(claimed_by(world, "late")) == 1


async def test_a_claim_that_the_api_server_refuses_is_followed_by_a_cold_start() -> None:
    world = await filled(World())

    def forbid(number: int, call: str) -> None:
        if call.startswith(f"PATCH {PODS_PATH}/python-"):
            raise Forbidden(403, "Forbidden", "a webhook says no")

    world.api.before = forbid
    put_sandbox(world)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "ClaimRefused" in world.events


def pool_uid(world: World) -> str:
    return world.api.objects[POOL_PATH]["metadata"]["uid"]
