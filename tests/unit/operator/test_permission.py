"""A SandboxPolicy in the lifecycle: what may not start waits, and what runs goes on."""

import pytest
from sandpod_crds.models import SandboxPool
from sandpod_operator.kinds import NAMESPACE, POLICY, TEMPLATE, Kind
from sandpod_operator.objects import Json
from sandpod_operator.pool.look import make_blueprint
from sandpod_operator.pool.memory import PoolMemory
from sandpod_operator.pool.status import PoolReason
from sandpod_operator.store import Store

from tests.support.operator_objects import INSTALLATION, KEY
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World, new_sandbox
from tests.support.policy_world import (
    NAMESPACE_PATH,
    POLICY_PATH,
    REFUSED,
    RUNNING,
    condition,
    namespace,
    policy,
    world_with,
)

CLAIM_PATH = f"{NAMESPACE_PATH}/persistentvolumeclaims/{KEY.name}-workspace"
# No pod can be made of it.
BAD_TEMPLATE = {"podTemplate": {"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}}}
ALSO = pytest.mark.parametrize("also", [{}, BAD_TEMPLATE], ids=["alone", "with a bad podTemplate"])
WALL_PATH = f"/apis/networking.k8s.io/v1/namespaces/{KEY.namespace}/networkpolicies/{KEY.name}-sandbox"


async def test_what_a_policy_forbids_does_not_start_and_is_told_why() -> None:
    world = await world_with({"requireIsolation": "Strict"})

    assert world.ready() == REFUSED
    assert "SandboxPolicy limits: isolation is Standard" in condition(world, "Ready")[2]
    # Nothing was made for it: the status and the event are all.
    assert [call.split()[0] for call in world.api.calls] == ["PATCH", "POST"]
    assert world.events == ["PolicyExceeded"]


@ALSO
async def test_a_volume_that_the_policy_forbids_is_not_made(also: Json) -> None:
    world = await world_with({"maxWorkspaceSize": "10Gi"}, {"workspace": {"size": "20Gi"}, **also})

    assert world.ready() == REFUSED
    assert CLAIM_PATH not in world.api.objects


async def test_one_that_waits_costs_nothing() -> None:
    world = await world_with({"requireIsolation": "Strict"})
    world.api.calls.clear()

    await world.wait(3600)

    assert world.api.calls == []


@pytest.mark.parametrize("what", ["the sandbox", "the policy", "the namespace", "no policy"])
async def test_it_starts_as_soon_as_something_has_changed(what: str) -> None:
    rules = {"maxSleepAfter": "1h", "namespaceSelector": {"matchLabels": {"stage": "test"}}}
    world = await world_with(rules, {"sleepAfter": "2h"}, stage="test")
    assert world.ready() == REFUSED

    if what == "the sandbox":
        world.api.change(SANDBOX_PATH, {"spec": {"sleepAfter": "30m"}})
    elif what == "the policy":
        world.api.change(POLICY_PATH, {"spec": {"maxSleepAfter": "3h"}})
    elif what == "the namespace":
        world.api.change(NAMESPACE_PATH, {"metadata": {"labels": {"stage": "live"}}})
    else:
        world.api.vanish(POLICY_PATH)
    await world.settle()

    assert world.ready() == RUNNING


async def test_a_policy_for_other_namespaces_does_not_matter() -> None:
    rules = {"requireIsolation": "Strict", "namespaceSelector": {"matchLabels": {"stage": "test"}}}

    assert (await world_with(rules, stage="live")).ready() == RUNNING


async def test_nothing_starts_before_the_namespaces_labels_are_known() -> None:
    world = World()
    world.api.put(POLICY_PATH, policy(maxSleepAfter="1h"))
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.settle()
    assert world.api.calls == []

    world.api.put(NAMESPACE_PATH, namespace())
    await world.settle()

    assert world.ready() == RUNNING


async def test_a_sandbox_that_runs_when_a_policy_comes_goes_on_and_says_so() -> None:
    world = await world_with({}, {"keepAlive": True})
    pod_uid = world.pod["metadata"]["uid"]
    assert world.status["sleepAfter"] == "never"

    world.api.change(POLICY_PATH, {"spec": {"maxSleepAfter": "5m"}})
    await world.settle()

    assert world.ready() == RUNNING
    assert world.pod["metadata"]["uid"] == pod_uid
    status, reason, message = condition(world, "SpecHonored")
    assert (status, reason) == ("False", "PolicyExceeded")
    assert message.startswith(
        "It goes on, but its next start will be refused: SandboxPolicy limits: keepAlive"
    )
    # How long it stays awake is the one thing that holds at once.
    assert world.status["sleepAfter"] == "5m"
    assert world.runtimes[pod_uid].sleep_after == 300


async def test_it_is_refused_at_its_next_start() -> None:
    world = await world_with({}, {"keepAlive": True})
    world.api.change(POLICY_PATH, {"spec": {"allowKeepAlive": False}})
    await world.settle()

    world.api.vanish(POD_PATH)
    await world.settle()

    assert world.ready() == REFUSED
    assert condition(world, "SpecHonored")[0] == "True"


async def test_a_wall_that_is_gone_is_not_built_anew_as_the_policy_forbids_it() -> None:
    world = await world_with({})
    world.api.change(POLICY_PATH, {"spec": {"allowedEgress": ["Restricted", "None"]}})
    await world.settle()
    open_wall = world.api.objects[WALL_PATH]["spec"]["egress"]

    world.api.vanish(WALL_PATH)
    await world.settle()

    closed = world.api.objects[WALL_PATH]["spec"]["egress"]
    assert len(closed) < len(open_wall)
    assert not any("ipBlock" in target for rule in closed for target in rule["to"])
    assert world.ready() == RUNNING


@ALSO
async def test_a_workspace_does_not_grow_beyond_the_policy(also: Json) -> None:
    world = await world_with({"maxWorkspaceSize": "10Gi"}, {"workspace": {"size": "5Gi"}})

    world.api.change(SANDBOX_PATH, {"spec": {"workspace": {"size": "20Gi"}, **also}})
    await world.settle()
    requested = world.api.objects[CLAIM_PATH]["spec"]["resources"]["requests"]["storage"]
    assert requested == "5Gi"
    assert condition(world, "SpecHonored")[1] == "PolicyExceeded"

    world.api.change(SANDBOX_PATH, {"spec": {"workspace": {"size": "8Gi"}}})
    await world.settle()
    assert world.api.objects[CLAIM_PATH]["spec"]["resources"]["requests"]["storage"] == "8Gi"


@ALSO
async def test_a_network_that_the_policy_forbids_is_not_opened_while_it_runs(also: Json) -> None:
    world = await world_with({"allowedEgress": ["None"]}, {"network": {"egress": "None"}})
    wall = world.api.objects[WALL_PATH]["spec"]

    world.api.change(SANDBOX_PATH, {"spec": {"network": {"egress": "Internet"}, **also}})
    await world.settle()

    assert world.api.objects[WALL_PATH]["spec"] == wall
    assert condition(world, "SpecHonored")[1] == "PolicyExceeded"


async def test_a_restarted_operator_judges_as_before() -> None:
    world = await world_with({"requireIsolation": "Strict"})
    world.api.calls.clear()

    world.boot()
    await world.settle()

    assert world.api.calls == []


def known(kind: Kind, obj: Json) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "uid": f"uid-{kind.plural}", "resourceVersion": "1"}}


def test_a_pool_makes_no_pods_that_a_policy_forbids() -> None:
    store, memory = Store(), PoolMemory()
    template = {"metadata": {"name": "t", "namespace": KEY.namespace}, "spec": {"image": "example.com/a"}}
    pool = SandboxPool.model_validate(
        {"metadata": {"name": "p", "namespace": KEY.namespace}, "spec": {"templateRef": {"name": "t"}}}
    )
    store.templates.observe(known(TEMPLATE, template))
    assert make_blueprint(pool, store=store, memory=memory, installation=INSTALLATION)[0] is not None

    store.policies.observe(known(POLICY, policy(allowedImages=["example.org/*"])))
    unknown = make_blueprint(pool, store=store, memory=memory, installation=INSTALLATION)
    store.namespaces.observe(known(NAMESPACE, namespace()))
    refused = make_blueprint(pool, store=store, memory=memory, installation=INSTALLATION)

    for blueprint, problem in (unknown, refused):
        assert blueprint is None
        assert problem is not None
        assert problem[0] is PoolReason.POLICY_EXCEEDED
    assert refused[1] is not None
    assert "the image example.com/a is none of those" in refused[1][1]
