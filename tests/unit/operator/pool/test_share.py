"""How the warm pods that a policy allows are shared among a namespace's pools."""

from sandpod_crds.errors import Forbidden
from sandpod_operator.kinds import POOL
from sandpod_operator.objects import Json, section
from sandpod_operator.pool.look import concerned

from tests.support.operator_objects import KEY, at
from tests.support.operator_world import World
from tests.support.pool_world import OURS, POOL_PATH, condition, put_pool, waiting

POLICY_PATH = "/apis/sandpod.dev/v1alpha1/sandboxpolicies/limits"
SECOND_PATH = f"{OURS}/sandboxpools/second"


def put_policy(world: World, most: int) -> None:
    namespace: Json = {"kind": "Namespace", "metadata": {"name": KEY.namespace, "labels": {}}}
    world.api.put(f"/api/v1/namespaces/{KEY.namespace}", namespace)
    policy = {"kind": "SandboxPolicy", "metadata": {"name": "limits"}, "spec": {"maxWarmPods": most}}
    world.api.put(POLICY_PATH, policy)


def put_second(world: World, replicas: int) -> None:
    spec = {"replicas": replicas, "templateRef": {"name": "python"}}
    metadata = {"name": "second", "namespace": KEY.namespace}
    world.api.put(SECOND_PATH, {"kind": "SandboxPool", "metadata": metadata, "spec": spec})


def shares(world: World) -> dict[str, int]:
    found = {"python": 0, "second": 0}
    for pod in waiting(world):
        found[pod["metadata"]["ownerReferences"][0]["name"]] += 1
    return found


def second_says(world: World) -> Json:
    conditions = section(world.api.objects[SECOND_PATH], "status")["conditions"]
    return next(each for each in conditions if each["type"] == "Ready")


async def two_pools(*, most: int, first: int, second: int) -> World:
    world = World()
    put_policy(world, most)
    put_pool(world, replicas=first)
    world.clock.advance(5)
    put_second(world, second)
    await world.wait(5)
    return world


async def test_the_older_pool_gets_its_pods_and_the_younger_one_what_is_left() -> None:
    world = await two_pools(most=5, first=3, second=4)

    assert shares(world) == {"python": 3, "second": 2}
    assert condition(world, "Ready") == ("True", "AllReady")
    said = second_says(world)
    assert (said["status"], said["reason"]) == ("False", "WarmPodsLimited")
    assert "SandboxPolicy limits allows 5 warm pods" in said["message"]


async def test_when_the_older_pool_asks_for_less_the_younger_one_gets_more() -> None:
    world = await two_pools(most=5, first=3, second=4)

    world.api.change(POOL_PATH, {"spec": {"replicas": 1}})
    await world.wait(5)

    assert shares(world) == {"python": 1, "second": 4}
    assert second_says(world)["reason"] == "AllReady"


async def test_when_the_older_pool_is_deleted_its_share_is_free() -> None:
    world = await two_pools(most=5, first=3, second=5)

    world.api.vanish(POOL_PATH)
    await world.wait(5)

    assert shares(world) == {"python": 0, "second": 5}


GOING: Json = {"metadata": {"deletionTimestamp": at(0), "finalizers": ["theirs/hold"]}}


async def test_a_pool_that_a_finalizer_holds_gives_its_pods_up_and_the_younger_one_gets_its_share() -> None:
    world = await two_pools(most=5, first=3, second=5)

    world.api.change(POOL_PATH, GOING)
    await world.wait(60)

    assert POOL_PATH in world.api.objects
    assert shares(world) == {"python": 0, "second": 5}


async def test_as_long_as_the_pods_of_a_pool_that_goes_are_there_nobody_else_gets_their_share() -> None:
    world = await two_pools(most=5, first=3, second=5)

    def keep(_: int, call: str) -> None:
        if call.startswith("DELETE") and "/pods/" in call:
            raise Forbidden(403, "Forbidden", "not allowed")

    world.api.before = keep
    world.api.change(POOL_PATH, GOING)
    await world.wait(60)

    assert shares(world) == {"python": 3, "second": 2}


async def test_a_policy_that_comes_later_takes_the_youngest_pods_of_the_youngest_pool() -> None:
    world = World()
    put_pool(world, replicas=3)
    world.clock.advance(5)
    put_second(world, 3)
    await world.wait(5)
    assert shares(world) == {"python": 3, "second": 3}

    put_policy(world, 4)
    await world.wait(5)

    assert shares(world) == {"python": 3, "second": 1}


async def test_while_a_changed_template_replaces_pods_there_are_never_more_than_may_be() -> None:
    world = await two_pools(most=4, first=4, second=0)
    most: list[int] = []

    def count(number: int, call: str) -> None:
        most.append(len([pod for pod in waiting(world) if "deletionTimestamp" not in pod["metadata"]]))

    world.api.after = count

    world.api.change(f"{OURS}/sandboxtemplates/python", {"spec": {"image": "other:2"}})
    await world.wait(20)

    assert max(most) == 4
    images = [pod["spec"]["containers"][0]["image"] for pod in waiting(world)]
    assert images == ["other:2"] * 4


async def test_only_where_a_policy_limits_them_does_one_pool_concern_the_others() -> None:
    limited, free = await two_pools(most=5, first=1, second=1), World()
    put_pool(free)
    put_second(free, 1)
    await free.wait(5)

    for world, names in ((limited, {"python", "second"}), (free, {"python"})):
        found = concerned(POOL, world.api.objects[POOL_PATH], world.store)
        assert {key.name for key in found} == names
