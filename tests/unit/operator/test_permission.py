"""A SandboxPolicy in the lifecycle: what may not start waits, and what runs goes on."""

from typing import Any

import pytest
from sandpod_crds.models import SandboxPool
from sandpod_operator.kinds import NAMESPACE, POLICY, TEMPLATE, Kind
from sandpod_operator.objects import Json, entries
from sandpod_operator.pool.look import make_blueprint
from sandpod_operator.pool.memory import PoolMemory
from sandpod_operator.pool.status import PoolReason
from sandpod_operator.store import Store
from sandpod_operator.times import format_time

from tests.support.operator_objects import INSTALLATION, KEY
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World, new_sandbox

POLICY_PATH = "/apis/sandpod.dev/v1alpha1/sandboxpolicies/limits"
NAMESPACE_PATH = f"/api/v1/namespaces/{KEY.namespace}"
RUNNING = ("Running", "True", "RuntimeAnswers")
REFUSED = ("Pending", "False", "PolicyExceeded")
CLAIM_PATH = f"{NAMESPACE_PATH}/persistentvolumeclaims/{KEY.name}-workspace"
WALL_PATH = f"/apis/networking.k8s.io/v1/namespaces/{KEY.namespace}/networkpolicies/{KEY.name}-sandbox"


def policy(**spec: Any) -> Json:
    return {"kind": "SandboxPolicy", "metadata": {"name": "limits"}, "spec": spec}


def namespace(**labels: str) -> Json:
    return {"kind": "Namespace", "metadata": {"name": KEY.namespace, "labels": labels}}


async def world_with(rules: Json, spec: Json | None = None, **labels: str) -> World:
    world = World()
    world.api.put(NAMESPACE_PATH, namespace(**labels))
    world.api.put(POLICY_PATH, policy(**rules))
    world.api.put(SANDBOX_PATH, new_sandbox(spec))
    await world.settle()
    return world


def condition(world: World, kind: str) -> tuple[str, str, str]:
    found = next(each for each in entries(world.status, "conditions") if each["type"] == kind)
    return found["status"], found["reason"], found["message"]


async def test_what_a_policy_forbids_does_not_start_and_is_told_why() -> None:
    world = await world_with({"requireIsolation": "Strict"})

    assert world.ready() == REFUSED
    assert "SandboxPolicy limits: isolation is Standard" in condition(world, "Ready")[2]
    # Nothing was made for it: the status and the event are all.
    assert [call.split()[0] for call in world.api.calls] == ["PATCH", "POST"]
    assert world.events == ["PolicyExceeded"]


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


async def test_a_workspace_does_not_grow_beyond_the_policy() -> None:
    world = await world_with({"maxWorkspaceSize": "10Gi"}, {"workspace": {"size": "5Gi"}})

    world.api.change(SANDBOX_PATH, {"spec": {"workspace": {"size": "20Gi"}}})
    await world.settle()
    requested = world.api.objects[CLAIM_PATH]["spec"]["resources"]["requests"]["storage"]
    assert requested == "5Gi"
    assert condition(world, "SpecHonored")[1] == "PolicyExceeded"

    world.api.change(SANDBOX_PATH, {"spec": {"workspace": {"size": "8Gi"}}})
    await world.settle()
    assert world.api.objects[CLAIM_PATH]["spec"]["resources"]["requests"]["storage"] == "8Gi"


async def test_a_network_that_the_policy_forbids_is_not_opened_while_it_runs() -> None:
    world = await world_with({"allowedEgress": ["None"]}, {"network": {"egress": "None"}})
    wall = world.api.objects[WALL_PATH]["spec"]

    world.api.change(SANDBOX_PATH, {"spec": {"network": {"egress": "Internet"}}})
    await world.settle()

    assert world.api.objects[WALL_PATH]["spec"] == wall
    assert condition(world, "SpecHonored")[1] == "PolicyExceeded"


async def test_when_one_has_gone_it_is_the_next_ones_turn() -> None:
    world = World()
    world.api.put(NAMESPACE_PATH, namespace())
    world.api.put(POLICY_PATH, policy(maxSandboxes=1))
    older = new_sandbox()
    older["metadata"]["name"] = "a-first"
    older_path = SANDBOX_PATH.replace(f"/{KEY.name}", "/a-first")
    world.api.put(older_path, older)
    world.api.put(SANDBOX_PATH, new_sandbox())
    await world.settle()
    assert world.ready() == REFUSED
    assert "only the oldest sandbox of a namespace may start" in condition(world, "Ready")[2]

    world.api.vanish(older_path)
    await world.settle()

    assert world.ready() == RUNNING


def box_path(name: str) -> str:
    return SANDBOX_PATH.replace(f"/{KEY.name}", f"/{name}")


def put_boxes(world: World, names: str, spec: Json | None = None) -> None:
    for name in names:
        sandbox = new_sandbox(spec)
        sandbox["metadata"]["name"] = name
        world.api.put(box_path(name), sandbox)


def phases(world: World, names: str) -> list[str]:
    return [world.api.objects[box_path(name)]["status"]["phase"] for name in names]


def world_of_two() -> World:
    world = World()
    world.api.put(NAMESPACE_PATH, namespace())
    world.api.put(POLICY_PATH, policy(maxSandboxes=2))
    return world


async def test_when_several_go_at_once_it_is_the_turn_of_as_many() -> None:
    world = world_of_two()
    put_boxes(world, "abcde")
    await world.settle()
    assert phases(world, "abcde") == ["Running", "Running", "Pending", "Pending", "Pending"]

    for name in "ab":
        world.api.vanish(box_path(name))
    await world.settle()

    assert phases(world, "cde") == ["Running", "Running", "Pending"]


async def test_so_it_is_when_the_operator_deletes_them_before_the_watch_says_that_they_are_gone() -> None:
    world = world_of_two()
    put_boxes(world, "ab", {"lifetime": {"maxAge": "100s"}})
    await world.wait(10)
    put_boxes(world, "cde")
    await world.wait(80)

    world.blind = True
    await world.wait(20)
    world.blind = False
    await world.settle()

    assert phases(world, "cde") == ["Running", "Running", "Pending"]


async def test_one_that_is_held_while_it_is_deleted_keeps_nobody_waiting() -> None:
    world = world_of_two()
    put_boxes(world, "ab", {"lifetime": {"maxAge": "100s"}})
    await world.wait(10)
    put_boxes(world, "c")
    held = {"finalizers": ["example.com/slow"]}
    world.api.change(box_path("a"), {"metadata": held})
    # As the API server answers the deletion of what somebody holds.
    world.api.change(box_path("a"), {"metadata": {"deletionTimestamp": format_time(world.now())}})
    await world.settle()

    assert phases(world, "c") == ["Running"]


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
