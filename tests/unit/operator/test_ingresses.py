"""The Ingresses of exposed ports in a cluster where others write too, refuse, and go away."""

import pytest
from sandpod_crds.errors import ApiError, Forbidden, Unavailable
from sandpod_operator.objects import Json, entries, section, uid_of

from tests.support.operator_objects import installation
from tests.support.operator_scenarios import PORTS, change, create, exposed_hosts, hosts
from tests.support.operator_world import SANDBOX_PATH, World, new_sandbox

INGRESSES = "/apis/networking.k8s.io/v1/namespaces/sandpod-system/ingresses"
RUNNING = ("Running", "True", "RuntimeAnswers")
MOST_CALLS_AN_HOUR = 60
HOUR = 3600.0
REFUSALS: list[ApiError] = [
    Forbidden(403, "Forbidden", "exceeded quota: previews"),
    ApiError(422, "Invalid", "spec.tls: not that"),
    Unavailable(500, "InternalError", 'Internal error occurred: failed calling webhook "validate.nginx"'),
]


def path_of(world: World, port: int = 8080) -> str:
    return f"{INGRESSES}/preview-{port}-{uid_of(world.sandbox)}"


def preview_ready(world: World) -> tuple[str, str]:
    found = next(c for c in entries(world.status, "conditions") if c["type"] == "PreviewReady")
    return found["status"], found["reason"]


def refuse(world: World, verb: str, error: ApiError) -> None:
    def no(number: int, call: str) -> None:
        if call.startswith(f"{verb} {INGRESSES}"):
            raise error

    world.api.before = no


def allow(world: World) -> None:
    world.api.before = lambda number, call: None


async def test_an_ingress_that_somebody_deletes_is_made_again() -> None:
    world = World()
    await create(world, PORTS)
    world.api.vanish(path_of(world))
    await world.wait(10)

    assert hosts(world) == exposed_hosts(world.sandbox)


async def test_an_ingress_of_somebody_else_is_never_written_over() -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox(PORTS))
    theirs: Json = {"kind": "Ingress", "metadata": {"namespace": "sandpod-system"}, "spec": {"rules": []}}
    theirs["metadata"]["name"] = path_of(world).rpartition("/")[2]
    world.api.put(path_of(world), theirs)
    await world.wait(100)

    assert world.ready() == RUNNING
    assert preview_ready(world) == ("False", "IngressTaken")
    assert world.api.objects[path_of(world)]["spec"] == {"rules": []}
    world.api.vanish(path_of(world))
    await world.wait(400)
    assert preview_ready(world) == ("True", "Exposed")


async def test_an_ingress_that_lost_its_labels_is_told_of() -> None:
    world = World()
    await create(world, PORTS)
    world.api.change(path_of(world), {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}})
    await world.wait(100)

    assert preview_ready(world) == ("False", "IngressTaken")
    assert world.ready() == RUNNING


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: str(error.status))
async def test_a_refusal_holds_no_sandbox_up_and_is_tried_again_but_not_often(error: ApiError) -> None:
    world = World()
    refuse(world, "POST", error)
    await create(world, PORTS)
    assert world.ready() == RUNNING
    assert preview_ready(world) == ("False", "IngressRefused")

    before = len(world.api.calls)
    await world.wait(HOUR)
    assert len(world.api.calls) - before < MOST_CALLS_AN_HOUR
    allow(world)
    await world.wait(400)
    assert preview_ready(world) == ("True", "Exposed")
    assert hosts(world) == exposed_hosts(world.sandbox)


@pytest.mark.parametrize("verb", ["DELETE", "PATCH"])
async def test_a_sandbox_goes_on_when_its_ingress_can_neither_be_moved_nor_deleted(verb: str) -> None:
    world = World()
    await create(world, PORTS)
    refuse(world, verb, REFUSALS[0])
    await change(world, ports=[] if verb == "DELETE" else [{"port": 8080, "tokenVersion": 2}])
    await change(world, paused=True)

    assert world.ready() == ("Asleep", "False", "Paused")
    allow(world)
    await world.wait(400)
    assert hosts(world) == exposed_hosts(world.sandbox)


async def test_what_was_deleted_while_the_operator_was_down_is_swept_by_the_next() -> None:
    world = World()
    await create(world, PORTS)
    world.api.vanish(SANDBOX_PATH)
    world.boot()
    await world.settle()

    assert hosts(world) == []


async def test_a_sweep_that_fails_is_tried_again() -> None:
    world = World()
    await create(world, PORTS)
    refuse(world, "DELETE", REFUSALS[0])
    world.api.vanish(SANDBOX_PATH)
    await world.wait(10)
    assert len(hosts(world)) == 1
    allow(world)
    await world.wait(100)

    assert hosts(world) == []


async def test_a_sandbox_of_the_same_name_elsewhere_keeps_its_own() -> None:
    # With a memory of its own: in other worlds, another sandbox has the same UID.
    world = World(installation())
    other = new_sandbox(PORTS)
    other["metadata"]["namespace"] = "other"
    elsewhere = SANDBOX_PATH.replace("/team/", "/other/")
    world.api.put(elsewhere, other)
    await create(world, PORTS)
    both = hosts(world)
    assert len(set(both)) == 2

    world.api.vanish(SANDBOX_PATH)
    await world.wait(10)
    assert hosts(world) == exposed_hosts(world.api.objects[elsewhere])


async def test_an_ingress_that_bears_our_labels_in_another_namespace_is_none_of_ours() -> None:
    world = World()
    await create(world, PORTS)
    ours = world.api.objects[path_of(world)]
    metadata = {"name": "mine", "namespace": "team", "labels": ours["metadata"]["labels"]}
    theirs = "/apis/networking.k8s.io/v1/namespaces/team/ingresses/mine"
    world.api.put(theirs, {"kind": "Ingress", "metadata": metadata, "spec": {"rules": []}})
    world.api.vanish(SANDBOX_PATH)
    await world.wait(10)

    assert [path for path in world.api.objects if "/ingresses/" in path] == [theirs]


@pytest.mark.parametrize("mode", ["Wildcard", "None"])
async def test_another_mode_takes_the_ingresses_away_and_back(mode: str) -> None:
    world = World()
    await create(world, PORTS)
    before, world.installation = world.installation, installation(previews={"mode": mode})
    world.boot()
    await world.wait(10)
    assert hosts(world) == []
    assert ("url" in entries(world.status, "ports")[0]) == (mode == "Wildcard")

    world.installation = before
    world.boot()
    await world.wait(10)
    assert hosts(world) == exposed_hosts(world.sandbox)


async def test_annotations_that_the_chart_does_not_want_any_more_go_and_others_stay() -> None:
    world = World(installation(previews={"annotations": {"example.com/ours": "1"}}))
    await create(world, PORTS)
    world.api.change(path_of(world), {"metadata": {"annotations": {"example.com/theirs": "2"}}})
    world.installation = installation(previews={"annotations": {"example.com/new": "3"}})
    world.boot()
    await world.wait(10)

    found = section(world.api.objects[path_of(world)]["metadata"], "annotations")
    assert {k: v for k, v in found.items() if k.startswith("example.com/")} == {
        "example.com/theirs": "2",
        "example.com/new": "3",
    }
