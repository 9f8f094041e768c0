"""Warm pods and walls: whose NetworkPolicy a claimed pod is behind."""

from dataclasses import replace
from ipaddress import ip_network

from sandpod_operator.memo import Memo

from tests.support.operator_world import World
from tests.support.pool_world import (
    PODS_PATH,
    POOL_PATH,
    TEMPLATE_PATH,
    claimed_by,
    filled,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")


async def test_a_sandbox_with_another_network_builds_its_wall_before_it_takes_a_pod() -> None:
    world = await filled(World())

    path = put_sandbox(world, spec={"network": {"egress": "None"}})
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]
    assert pod["labels"]["sandpod.dev/network"] == world.sandbox["metadata"]["uid"]
    wall = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/box-sandbox"
    assert wall in world.api.objects
    order = [f"POST {wall.rpartition('/')[0]}", f"PATCH {PODS_PATH}/{pod['name']}", f"PATCH {path}/status"]
    assert [call for call in world.api.calls if call in order] == order


async def test_a_network_that_changes_later_moves_the_pod_behind_a_wall_of_its_own() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()

    world.api.change(path, {"spec": {"network": {"egress": "None"}}})
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]
    assert pod["labels"]["sandpod.dev/network"] == world.sandbox["metadata"]["uid"]


async def test_the_pools_wall_stands_as_long_as_somebody_is_behind_it() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    [wall] = walls(world)

    world.api.vanish(POOL_PATH)
    await world.settle()
    assert walls(world) == [wall]
    assert waiting(world) == []
    assert ready(world) == RUNNING

    world.api.vanish(path)
    await world.settle()
    assert walls(world) == []


async def test_a_changed_network_of_the_template_is_another_wall() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    before = set(walls(world))

    world.api.change(TEMPLATE_PATH, {"spec": {"network": {"egress": "None"}}})
    await world.wait(5)
    assert before < set(walls(world))
    assert len(walls(world)) == 2
    assert {pod["metadata"]["labels"]["sandpod.dev/network"] for pod in waiting(world)}.isdisjoint(
        {pod["metadata"]["labels"]["sandpod.dev/network"] for pod in claimed_by(world)}
    )

    world.api.vanish(path)
    await world.settle()
    assert len(walls(world)) == 1


async def test_behind_an_old_wall_that_somebody_has_opened_nobody_stays() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    [old] = walls(world)
    world.api.change(TEMPLATE_PATH, {"spec": {"network": {"egress": "None"}}})
    await world.wait(5)

    world.api.change(old, {"spec": {"ingress": [{}], "egress": [{}]}})
    await world.wait(5)

    assert ready(world) == RUNNING
    uid = world.api.objects[path]["metadata"]["uid"]
    assert claimed_by(world)[0]["metadata"]["labels"]["sandpod.dev/network"] == uid
    own = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/box-sandbox"
    assert own in world.api.objects
    assert old not in walls(world)


async def test_an_operator_with_other_ranges_corrects_who_is_behind_an_old_wall() -> None:
    world = await filled(World())
    put_sandbox(world)
    await world.settle()
    [old] = walls(world)
    world.api.change(TEMPLATE_PATH, {"spec": {"network": {"egress": "None"}}})
    await world.wait(5)

    settings = world.installation.settings
    network = settings.network.model_copy(update={"cluster_ranges": [ip_network("203.0.113.0/24")]})
    settings = settings.model_copy(update={"network": network})
    world.installation = replace(world.installation, settings=settings, memo=Memo())
    world.boot()
    await world.wait(5)

    own = world.api.objects["/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/box-sandbox"]
    assert "203.0.113.0/24" in str(own["spec"])
    assert ready(world) == RUNNING
    assert old not in walls(world)


def walls(world: World) -> list[str]:
    return sorted(path for path in world.api.objects if "networkpolicies" in path and path.endswith("-pool"))
