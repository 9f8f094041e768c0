"""Which pools an event is about, and what is found out about one."""

from collections.abc import Iterator

import pytest
from sandpod_operator.kinds import CLAIM, NETWORK_POLICY, POD, POOL, SANDBOX, TEMPLATE, Kind
from sandpod_operator.objects import Json
from sandpod_operator.observations import Key
from sandpod_operator.pool.look import concerned
from sandpod_operator.store import Cache, Store

from tests.support.operator_objects import sandbox
from tests.support.operator_world import World
from tests.support.pool_objects import POOL_KEY, plan, pool, waiting_pod
from tests.support.pool_world import POOL_PATH, claimed_by, filled, put_sandbox


def store() -> Store:
    found = Store()
    found.pools.observe(
        pool().to_json()
        | {"metadata": {"name": "python", "namespace": "team", "uid": "1", "resourceVersion": "1"}}
    )
    return found


def made(kind: Kind) -> Json:
    start = plan({"workspace": {"size": "1Gi"}}).start("python-aaaaa")
    return {POD: start.pod, CLAIM: start.claim, NETWORK_POLICY: plan().wall}[kind] or {}


@pytest.mark.parametrize("kind", [POD, CLAIM, NETWORK_POLICY], ids=lambda kind: kind.plural)
def test_what_was_made_for_a_pool_concerns_it(kind: Kind) -> None:
    assert list(concerned(kind, made(kind), store())) == [POOL_KEY]


def test_a_template_concerns_the_pools_that_name_it() -> None:
    mine = {"metadata": {"name": "python", "namespace": "team"}}
    other = {"metadata": {"name": "python", "namespace": "elsewhere"}}

    assert list(concerned(TEMPLATE, mine, store())) == [POOL_KEY]
    assert list(concerned(TEMPLATE, other, store())) == []


def test_a_sandbox_concerns_the_pool_that_its_pod_comes_from() -> None:
    assert list(concerned(SANDBOX, sandbox(status={"pool": "python"}), store())) == [POOL_KEY]
    assert list(concerned(SANDBOX, sandbox({"poolRef": {"name": "python"}}), store())) == []


def test_a_pool_concerns_itself_and_other_pods_no_pool() -> None:
    assert list(concerned(POOL, {"metadata": {"name": "python", "namespace": "team"}}, store())) == [POOL_KEY]
    pod = waiting_pod()
    pod["metadata"]["annotations"] = {}
    assert list(concerned(POD, pod, store())) == []


async def test_a_claimed_pod_still_concerns_its_pool_which_counts_it() -> None:
    world = await filled(World())
    put_sandbox(world)
    await world.settle()

    assert list(concerned(POD, claimed_by(world)[0], world.store)) == [POOL_KEY]


async def test_a_look_at_a_pool_looks_at_nothing_in_other_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await filled(World())
    put_sandbox(world)
    await world.wait(5)

    def names(cache: Cache) -> Iterator[Key]:
        assert cache is world.store.policies
        return iter(())

    monkeypatch.setattr(Cache, "__iter__", names)
    await world.pool_reconciler.reconcile(POOL_KEY)

    assert world.api.objects[POOL_PATH]["status"]["claimed"] == 1
