"""Somebody undoes what the operator writes, each time and for ever: another controller, or an admission
webhook. The operator does not work at their pace, and says that there is somebody.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from sandpod_crds.names import LABEL_INSTANCE, LABEL_MANAGED_BY, LABEL_NETWORK
from sandpod_operator.objects import Json, entries, section, uid_of
from sandpod_operator.resources.claim import workspace_name

from tests.support.operator_objects import KEY
from tests.support.operator_scenarios import PORTS, VOLUME, create
from tests.support.operator_world import CLAIMS_PATH, POD_PATH, SANDBOX_PATH, World
from tests.support.pool_world import POOL_PATH, filled

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


@pytest.mark.parametrize("what", WEBHOOKS)
async def test_a_sandbox_that_starts_under_such_a_webhook_says_how_it_is(what: str) -> None:
    world = World()
    webhook(world, what)

    await create(world, VOLUME)
    await world.wait(60)

    assert world.status.get("phase") in ("Pending", "Running")
    assert entries(world.status, "conditions")


@pytest.mark.parametrize("end", ["idle", "a crash", "pause"])
async def test_a_pod_that_may_not_have_its_owner_back_ends_as_any_other(end: str) -> None:
    world = World()
    await create(world, VOLUME)
    webhook(world, "takes the owner off the pod")
    world.api.change(POD_PATH, {"metadata": {"annotations": {"touched": "yes"}}})
    await world.wait(60)
    assert "ownerReferences" not in world.pod["metadata"]
    assert "Undone" in world.events

    if end == "pause":
        world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    else:
        world.fall_asleep(world.status["podUID"])
    await world.wait(60)

    assert world.ready() == ("Asleep", "False", "Paused" if end == "pause" else "Idle")
    assert POD_PATH not in world.api.objects


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
    assert POOL_PATH in world.api.objects
