"""Somebody undoes what the operator writes, each time and for ever: another controller, or an admission
webhook. The operator does not work at their pace, and says that there is somebody.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from sandpod_crds.names import LABEL_INSTANCE, LABEL_MANAGED_BY, LABEL_NETWORK
from sandpod_operator.objects import Json, entries, section, uid_of
from sandpod_operator.resources.claim import workspace_name

from tests.support.operator_node import crash_it
from tests.support.operator_objects import KEY
from tests.support.operator_scenarios import PORTS, VOLUME, create
from tests.support.operator_world import CLAIMS_PATH, POD_PATH, SANDBOX_PATH, World
from tests.support.pool_world import PODS_PATH, claimed_by, condition, filled, put_pool, put_sandbox

CLAIM_PATH = f"{CLAIMS_PATH}/{workspace_name(KEY.name)}"
WALL_PATH = f"/apis/networking.k8s.io/v1/namespaces/{KEY.namespace}/networkpolicies/{KEY.name}-sandbox"
RUNNING = ("Running", "True", "RuntimeAnswers")
SOON = 0.2
# In ten minutes: some at once, then after 5, 10, 20, … seconds, each with an answer to what the rival did.
FEW = 60


class Deed(NamedTuple):
    """What somebody does to the objects of this kind; None: they delete them."""

    plural: str
    change: Json | None


DEEDS = {
    "takes the owner off the pod": Deed("pods", {"metadata": {"ownerReferences": None}}),
    "takes a label off the pod": Deed("pods", {"metadata": {"labels": {LABEL_MANAGED_BY: None}}}),
    "puts the pod behind another wall": Deed("pods", {"metadata": {"labels": {LABEL_NETWORK: "none"}}}),
    "opens the wall": Deed("networkpolicies", {"spec": {"egress": [{}]}}),
    "takes the wall down": Deed("networkpolicies", None),
    "takes a label off the wall": Deed("networkpolicies", {"metadata": {"labels": {LABEL_MANAGED_BY: None}}}),
    "takes the owner off the claim": Deed("persistentvolumeclaims", {"metadata": {"ownerReferences": None}}),
    "deletes the Ingress": Deed("ingresses", None),
    "changes the Ingress": Deed("ingresses", {"spec": {"rules": []}}),
}


def rival(world: World, deed: Deed) -> Callable[[], None]:
    """Does it a moment after each write of the operator's."""

    def do() -> None:
        for path in [path for path in world.api.objects if path.split("/")[-2] == deed.plural]:
            if deed.change is None:
                world.api.vanish(path)
            else:
                world.api.change(path, deed.change)

    def answer(_: int, call: str) -> None:
        verb, path = call.split(" ")
        if verb in ("POST", "PATCH") and f"/{deed.plural}" in path:
            world.clock.call_at(world.clock.time() + SOON, do)

    world.api.after = answer
    return do


@pytest.mark.parametrize("what", DEEDS)
async def test_another_controller_keeps_nobody_busy_who(what: str) -> None:
    world = World()
    await create(world, {**VOLUME, **PORTS})
    pod_uid = uid_of(world.pod)
    do = rival(world, DEEDS[what])
    world.api.calls.clear()

    do()
    await world.wait(600)

    assert len(world.api.calls) <= FEW, world.api.calls
    assert world.ready() == RUNNING
    assert uid_of(world.pod) == pod_uid
    if what != "takes a label off the pod":
        assert "Undone" in world.events


@pytest.mark.parametrize(
    "deeds",
    [
        ("takes the owner off the pod", "puts the pod behind another wall"),
        ("takes the wall down", "opens the wall"),
    ],
    ids=" and ".join,
)
async def test_nor_does_one_who_does_now_this_and_now_that(deeds: tuple[str, str]) -> None:
    world = World()
    await create(world, {**VOLUME, **PORTS})
    turns = itertools.cycle([rival(world, DEEDS[deed]) for deed in deeds])

    def answer(_: int, call: str) -> None:
        if call.startswith(("POST", "PATCH")) and f"/{DEEDS[deeds[0]].plural}" in call:
            world.clock.call_at(world.clock.time() + SOON, next(turns))

    world.api.after = answer
    world.api.calls.clear()
    next(turns)()
    await world.wait(600)

    assert len(world.api.calls) <= 2 * FEW, world.api.calls
    assert "Undone" in world.events
    assert world.ready() == RUNNING


async def test_whoever_exposes_a_port_and_takes_it_back_again_and_again_is_nobodys_rival() -> None:
    world = World()
    await create(world, PORTS)

    for ports in itertools.islice(itertools.cycle([None, PORTS["ports"]]), 16):
        world.api.change(SANDBOX_PATH, {"spec": {"ports": ports}})
        await world.wait(5)

    assert "Undone" not in world.events
    assert len([path for path in world.api.objects if "/ingresses/" in path]) == 1


async def test_a_sandbox_that_is_woken_again_and_again_is_nobodys_rival() -> None:
    world = World()
    await create(world, VOLUME)

    for number in range(12):
        world.fall_asleep(world.status["podUID"])
        await world.wait(1)
        world.ask_awake(f"request {number}")
        await world.wait(1)

    assert "Undone" not in world.events
    assert world.ready() == RUNNING


async def test_when_it_stops_all_is_put_right_and_nobody_speaks_of_it_any_more() -> None:
    world = World()
    await create(world, {**VOLUME, **PORTS})
    wanted = world.api.objects[WALL_PATH]["spec"]
    rival(world, DEEDS["opens the wall"])()
    await world.wait(60)
    assert isolated(world)[:2] == ("False", "Undone")

    world.api.after = lambda number, call: None
    await world.wait(900)

    assert world.api.objects[WALL_PATH]["spec"] == wanted
    assert isolated(world)[:2] == ("True", "Standard")
    world.api.calls.clear()
    await world.wait(3600)
    assert world.api.calls == []


def isolated(world: World) -> tuple[str, str, str]:
    found = next(each for each in entries(world.status, "conditions") if each["type"] == "Isolated")
    return found["status"], found["reason"], found["message"]


def opened(obj: Json) -> None:
    obj["spec"]["egress"] = [{}]


def without(section_name: str, name: str) -> Callable[[Json], Any]:
    def take_off(obj: Json) -> None:
        section(obj["metadata"], section_name).pop(name, None)

    return take_off


def unowned(obj: Json) -> None:
    obj["metadata"].pop("ownerReferences", None)


WEBHOOKS: dict[str, tuple[str, Callable[[Json], Any]]] = {
    "opens the wall": ("NetworkPolicy", opened),
    "takes a label off the wall": ("NetworkPolicy", without("labels", LABEL_MANAGED_BY)),
    "takes the owner off the claim": ("PersistentVolumeClaim", unowned),
    "takes a label off the claim": ("PersistentVolumeClaim", without("labels", LABEL_INSTANCE)),
    "takes the owner off the pod": ("Pod", unowned),
    "takes the pod out of its wall": ("Pod", without("labels", LABEL_NETWORK)),
}


# What nobody can be let into is not started, and says why.
HOW_IT_STARTS = {
    "opens the wall": ("Pending", "Undone"),
    "takes a label off the wall": ("Pending", "PolicyTaken"),
    "takes the owner off the pod": ("Pending", "NameTaken"),
}


def webhook(world: World, what: str) -> None:
    kind, how = WEBHOOKS[what]
    world.api.admit = lambda obj: how(obj) if obj.get("kind") == kind else None


@pytest.mark.parametrize("what", WEBHOOKS)
async def test_a_webhook_that_changes_what_is_written_keeps_nobody_busy_and_is_told_of(what: str) -> None:
    world = World()
    await create(world, VOLUME)
    webhook(world, what)
    for path in (POD_PATH, CLAIM_PATH, WALL_PATH):
        world.api.change(path, {"metadata": {"annotations": {"touched": "yes"}}})

    world.api.calls.clear()
    await world.wait(600)

    assert len(world.api.calls) <= FEW, world.api.calls
    assert world.ready() == RUNNING
    assert ("Undone" in world.events) == (what != "takes a label off the wall")


@pytest.mark.parametrize("what", WEBHOOKS)
async def test_a_sandbox_that_starts_under_such_a_webhook_says_how_it_is(what: str) -> None:
    world = World()
    webhook(world, what)

    await create(world, VOLUME)
    await world.wait(60)

    phase, _, why = world.ready()
    assert (phase, why) == HOW_IT_STARTS.get(what, ("Running", "RuntimeAnswers"))


async def disowned() -> World:
    """Its pod has no owner any more, and may not have one."""
    world = World()
    await create(world, VOLUME)
    webhook(world, "takes the owner off the pod")
    world.api.change(POD_PATH, {"metadata": {"annotations": {"touched": "yes"}}})
    await world.wait(60)
    assert "ownerReferences" not in world.pod["metadata"]
    assert "Undone" in world.events
    return world


@pytest.mark.parametrize("why", ["Idle", "Paused"])
async def test_a_pod_that_may_not_have_its_owner_back_sleeps_as_any_other(why: str) -> None:
    world = await disowned()

    if why == "Paused":
        world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    else:
        world.fall_asleep(world.status["podUID"])
    await world.wait(60)

    assert world.ready() == ("Asleep", "False", why)
    assert POD_PATH not in world.api.objects


async def test_one_that_crashes_is_buried_and_another_takes_its_place() -> None:
    world = await disowned()
    before = world.status["podUID"]
    world.api.admit = lambda obj: None

    world.runtimes.pop(before)
    crash_it(world, world.pod)
    await world.wait(60)

    assert world.ready() == RUNNING
    assert uid_of(world.pod) != before


POOL_DEEDS = {
    "deletes warm pods": Deed("pods", None),
    "takes the pool's wall down": Deed("networkpolicies", None),
    "opens the pool's wall": Deed("networkpolicies", {"spec": {"egress": [{}]}}),
    "deletes the volumes of warm pods": Deed("persistentvolumeclaims", None),
}


@pytest.mark.parametrize("what", POOL_DEEDS)
async def test_nor_does_a_pool_work_at_the_pace_of_somebody_who(what: str) -> None:
    world = await filled(World(), replicas=2, template={"workspace": {"size": "1Gi"}})
    do = rival(world, POOL_DEEDS[what])
    world.api.calls.clear()

    do()
    await world.wait(600)

    assert len(world.api.calls) <= 3 * FEW, world.api.calls
    told = None if what == "deletes the volumes of warm pods" else condition(world, "Ready")
    assert told in (None, ("False", "PodsVanish"), ("False", "Undone"))


@pytest.mark.parametrize("what", ["takes the owner off the pod", "takes the pod out of its wall"])
async def test_nor_of_a_webhook_that_changes_its_pods(what: str) -> None:
    world = World()
    webhook(world, what)

    put_pool(world, replicas=2)
    await world.wait(60)
    world.api.calls.clear()
    await world.wait(630)

    assert len(world.api.calls) <= 3 * FEW, world.api.calls
    assert condition(world, "Ready") == ("False", "PodsVanish")


async def test_claims_of_warm_pods_do_not_make_their_wall_be_written_more_often() -> None:
    world = await filled(World(), replicas=2)
    rival(world, POOL_DEEDS["opens the pool's wall"])()
    world.api.calls.clear()

    for number in range(30):
        put_sandbox(world, f"s{number}")
        await world.wait(10)

    assert len([call for call in world.api.calls if call.endswith("-pool")]) <= FEW


@pytest.mark.parametrize("force", [False, True])
async def test_sandboxes_that_live_for_seconds_find_the_pools_places_filled(force: bool) -> None:
    world = await filled(World(), replicas=2)

    for number in range(20):
        path = put_sandbox(world, f"s{number}")
        await world.settle()
        claimed = claimed_by(world, f"s{number}")
        assert claimed, f"s{number} started cold"
        world.api.vanish(path)
        for pod in claimed if force else ():
            world.api.vanish(f"{PODS_PATH}/{pod['metadata']['name']}")
        await world.wait(5)
