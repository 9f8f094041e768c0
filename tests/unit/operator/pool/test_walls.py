"""The NetworkPolicies of pools, where others have their own."""

from hypothesis import given
from hypothesis import strategies as st
from sandpod_operator.objects import Json, replacing

from tests.support.operator_api import merge_patch
from tests.support.operator_world import World
from tests.support.pool_world import (
    TEMPLATE_PATH,
    condition,
    filled,
    pool_status,
    put_pool,
    put_sandbox,
    waiting,
)

WALLS = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/"
THEIRS: Json = {"podSelector": {"matchLabels": {"app": "theirs"}}, "policyTypes": ["Ingress"]}


def walls(world: World) -> dict[str, Json]:
    return {path: obj for path, obj in world.api.objects.items() if path.startswith(WALLS)}


def stranger(path: str, **metadata: Json) -> Json:
    name = path.removeprefix(WALLS)
    return {
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": "team", **metadata},
        "spec": THEIRS,
    }


async def taken(**metadata: Json) -> tuple[World, str]:
    """Somebody has put a policy of theirs in the place of the pool's."""
    world = await filled(World())
    path = next(iter(walls(world)))
    world.api.vanish(path)
    world.api.put(path, stranger(path, **metadata))
    await world.wait(1)
    return world, path


async def test_a_strangers_policy_of_that_name_is_left_alone_and_the_pool_says_so() -> None:
    world, path = await taken()

    assert world.api.objects[path]["spec"] == THEIRS
    assert condition(world, "Ready") == ("False", "PolicyTaken")
    said = next(each for each in pool_status(world)["conditions"] if each["type"] == "Ready")["message"]
    assert f"the NetworkPolicy {path.removeprefix(WALLS)} does not have the pool's labels." in said


async def test_one_that_only_carries_our_label_is_a_strangers_too() -> None:
    world, path = await taken(labels={"app.kubernetes.io/managed-by": "sandpod"})

    assert world.api.objects[path]["spec"] == THEIRS
    assert condition(world, "Ready") == ("False", "PolicyTaken")


async def test_without_its_wall_no_further_pod_is_made() -> None:
    world, _ = await taken()
    before = len(waiting(world))

    put = world.api.change
    put("/apis/sandpod.dev/v1alpha1/namespaces/team/sandboxpools/python", {"spec": {"replicas": 5}})
    await world.wait(60)

    assert len(waiting(world)) == before


async def test_when_the_stranger_has_gone_the_wall_stands_again() -> None:
    world, path = await taken()

    world.api.vanish(path)
    await world.wait(30)

    assert walls(world)[path]["spec"]["podSelector"]["matchLabels"].keys() == {"sandpod.dev/network"}
    assert condition(world, "Ready") == ("True", "AllReady")


async def test_waiting_for_a_stranger_to_go_costs_ever_less() -> None:
    world, _ = await taken()
    world.api.calls.clear()

    await world.wait(600)

    # A try costs two calls, and the longest pause is five minutes.
    assert len([call for call in world.api.calls if "networkpolicies" in call]) <= 2 * 10
    assert len([call for call in world.api.calls if "status" in call]) <= 1


async def test_what_somebody_adds_to_a_pools_wall_is_taken_away_again() -> None:
    world = await filled(World())
    path, wall = next(iter(walls(world).items()))
    world.api.change(path, {"spec": {"podSelector": {"matchLabels": {"app": "x"}}, "ingress": [{}]}})

    await world.wait(2)

    assert walls(world)[path]["spec"] == wall["spec"]


async def test_a_wall_that_lost_its_annotations_gets_them_back() -> None:
    world = await filled(World())
    path, wall = next(iter(walls(world).items()))

    world.api.change(path, {"metadata": {"annotations": None}})
    await world.wait(2)

    assert walls(world)[path]["metadata"]["annotations"] == wall["metadata"]["annotations"]


async def test_an_old_wall_is_taken_away_though_somebody_took_off_its_annotations() -> None:
    world = await filled(World())
    sandbox = put_sandbox(world)
    await world.settle()
    old = next(iter(walls(world)))
    world.api.change(TEMPLATE_PATH, {"spec": {"network": {"egress": "None"}}})
    await world.wait(5)

    world.api.change(old, {"metadata": {"annotations": None}})
    await world.wait(5)
    assert old in walls(world)
    world.api.vanish(sandbox)
    await world.wait(5)

    assert old not in walls(world)
    assert len(walls(world)) == 1


async def test_a_pools_first_wall_is_created_and_not_laid_over_what_may_be_there() -> None:
    world = World()
    put_pool(world)
    await world.settle()
    path, wall = next(iter(walls(world).items()))
    assert [call for call in world.api.calls if "networkpolicies" in call] == [f"POST {WALLS[:-1]}"]
    assert wall["metadata"]["name"] == path.removeprefix(WALLS)


objects = st.recursive(
    st.integers() | st.text(max_size=3), lambda inner: st.dictionaries(st.sampled_from("abc"), inner)
)


@given(found=st.dictionaries(st.sampled_from("abc"), objects), wanted=st.dictionaries(st.text(), objects))
def test_the_merge_patch_makes_the_one_object_the_other(found: Json, wanted: Json) -> None:
    assert merge_patch(found, replacing(found, wanted)) == wanted
