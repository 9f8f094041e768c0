"""Two sandboxes never get one pod, and one sandbox never two, whatever happens in between."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from sandpod_crds.errors import Conflict, Unavailable
from sandpod_operator.objects import Json, uid_of
from sandpod_operator.observations import Key

from tests.support.operator_api import Api
from tests.support.operator_node import run_it
from tests.support.operator_objects import at
from tests.support.operator_world import World
from tests.support.pool_world import (
    OURS,
    PODS_PATH,
    POOL_PATH,
    calls_about,
    claimed_by,
    filled,
    pods,
    put_pool,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")


class Slow:
    """An API server that others get a turn at while it works."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._api, name)

        async def slowly(*arguments: Any, **options: Any) -> Json:
            await asyncio.sleep(0)
            answer = await call(*arguments, **options)
            await asyncio.sleep(0)
            return answer

        return slowly


async def test_many_sandboxes_race_for_a_few_pods() -> None:
    world = World()
    world.cluster = cast("Any", Slow(world.api))
    world.boot()
    await filled(world, replicas=5)
    names = [f"box-{number}" for number in range(20)]
    for name in names:
        put_sandbox(world, name)
    world.see()
    keys = [await world.queue.get() for _ in names]

    # As many workers as sandboxes
    await asyncio.gather(*(world.reconciler.attempt(key) for key in keys))
    for key in keys:
        world.queue.done(key)
    taken = [uid_of(pod) for name in names for pod in claimed_by(world, name)]
    assert len(taken) == len(set(taken)) == 5
    assert len(successes(world)) == 5
    # Nor do our own workers stand in each other's way.
    assert len(calls_about(world, "PATCH", "/pods/")) == 5

    await world.wait(5)
    assert [ready(world, name) for name in names] == [RUNNING] * 20


async def test_a_pod_that_changed_since_it_was_seen_is_looked_at_again() -> None:
    world = await filled(World())
    hook(world, "PATCH", lambda path: world.api.change(path, {"status": {"message": "the kubelet was here"}}))

    put_sandbox(world)
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]["name"]
    # The same one, a moment later.
    assert calls_about(world, pod) == [
        f"PATCH {PODS_PATH}/{pod}",
        f"GET {PODS_PATH}/{pod}",
        f"PATCH {PODS_PATH}/{pod}",
    ]


async def test_a_pod_that_somebody_else_has_claimed_is_left_to_them() -> None:
    world = await filled(World())
    theirs: list[str] = []

    def overtake(path: str) -> None:
        owner = {"apiVersion": "v1", "kind": "Sandbox", "name": "other", "uid": "other", "controller": True}
        world.api.put(f"{OURS}/sandboxes/other", {"kind": "Note", "metadata": {"name": "other"}})
        owner["uid"] = uid_of(world.api.objects[f"{OURS}/sandboxes/other"])
        world.api.change(path, {"metadata": {"ownerReferences": [owner]}})
        theirs.append(path.rpartition("/")[2])

    hook(world, "PATCH", overtake)
    put_sandbox(world)
    await world.settle()

    assert ready(world) == RUNNING
    assert claimed_by(world)[0]["metadata"]["name"] not in theirs


async def test_a_pod_that_dies_before_the_claim_is_never_bound() -> None:
    world = await filled(World())
    dead: list[str] = []

    def die(path: str) -> None:
        dead.append(uid_of(world.api.objects[path]))
        world.api.change(path, {"status": FAILED})

    hook(world, "PATCH", die)
    put_sandbox(world)
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"].startswith("python-")
    assert world.status["podUID"] not in dead
    assert [world.runtimes[uid].bound for uid in dead] == [False]


async def test_a_pod_that_vanishes_before_the_claim_is_passed_over() -> None:
    world = await filled(World())
    hook(world, "PATCH", world.api.vanish)

    put_sandbox(world)
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"].startswith("python-")


async def test_a_pod_that_dies_after_the_claim_is_never_bound_and_another_is_taken() -> None:
    world = await filled(World())
    dead: list[str] = []

    def die(path: str) -> None:
        dead.append(uid_of(world.api.objects[path]))
        world.api.change(path, {"status": FAILED})

    hook(world, "PATCH", die, moment="after")
    put_sandbox(world)
    world.see()
    await world.wait(3)

    assert ready(world) == RUNNING
    assert world.status["podName"].startswith("python-")
    assert [world.runtimes[uid].bound for uid in dead] == [False]


async def test_a_workspace_of_a_pod_that_dies_after_the_claim_is_the_sandboxs_or_nobodys() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})
    hook(world, "PATCH", lambda path: world.api.change(path, {"status": FAILED}), moment="after")

    put_sandbox(world)
    await world.wait(10)

    assert ready(world) == RUNNING
    volumes = [path.rpartition("/")[2] for path in world.api.objects if "persistentvolumeclaims" in path]
    assert len(volumes) == 3
    assert world.status["workspaceClaim"] in volumes


async def test_an_answer_that_is_lost_is_looked_up() -> None:
    world = await filled(World())
    hook(world, "PATCH", unavailable, moment="after")

    put_sandbox(world)
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]["name"]
    assert calls_about(world, pod) == [f"PATCH {PODS_PATH}/{pod}", f"GET {PODS_PATH}/{pod}"]
    assert ready(world) == RUNNING
    assert len(claimed_by(world)) == 1


async def test_a_request_that_is_lost_is_made_again_for_the_same_pod() -> None:
    world = await filled(World())
    late: list[Json] = []
    hook(world, "PATCH", lambda path: late.append(world.api.objects[path]) or unavailable(path))

    put_sandbox(world)
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]["name"]
    assert calls_about(world, pod) == [
        f"PATCH {PODS_PATH}/{pod}",
        f"GET {PODS_PATH}/{pod}",
        f"PATCH {PODS_PATH}/{pod}",
    ]
    # And when it comes late after all, the pod has changed since.
    with pytest.raises(Conflict):
        await world.api.patch(
            f"{PODS_PATH}/{pod}",
            {"metadata": {"resourceVersion": late[0]["metadata"]["resourceVersion"], "labels": {}}},
        )


async def test_while_nobody_knows_the_sandbox_does_not_start_cold() -> None:
    world = await filled(World(), replicas=1)
    away = [True]

    def go_away(number: int, call: str) -> None:
        if away[0] and "/pods/python-" in call:
            raise Unavailable(503, "Unavailable", "away")

    world.api.before = go_away
    put_sandbox(world)
    await world.wait(20)
    assert f"POST {PODS_PATH}" not in calls_about(world, "POST")
    assert len(waiting(world)) == 1

    away[0] = False
    await world.wait(30)
    assert ready(world) == RUNNING
    assert world.status["podName"].startswith("python-")


async def test_the_pod_of_a_sandbox_that_went_while_nobody_knew_is_free_again() -> None:
    world = await filled(World(), replicas=1)
    away = [True]

    def go_away(number: int, call: str) -> None:
        if away[0] and "/pods/python-" in call:
            raise Unavailable(503, "Unavailable", "away")

    world.api.before = go_away
    path = put_sandbox(world)
    await world.settle()
    world.api.vanish(path)
    await world.settle()
    away[0] = False
    await world.wait(200)

    assert len(waiting(world)) == 1
    put_sandbox(world, "next")
    await world.settle()
    assert len(claimed_by(world, "next")) == 1


async def test_a_pod_that_is_claimed_in_the_moment_in_which_its_pool_gives_it_up_stays() -> None:
    world = await filled(World(), replicas=1)
    [pod] = waiting(world)

    hook(
        world,
        "DELETE",
        lambda path: world.api.change(path, {"metadata": {"annotations": {"claimed": "yes"}}}),
    )
    world.blind = True
    world.api.change(POOL_PATH, {"spec": {"replicas": 0}})
    world.store.pools.observe(world.api.objects[POOL_PATH])
    world.pool_queue.add(Key("team", "python"))
    await world.settle()

    assert [uid_of(each) for each in waiting(world)] == [uid_of(pod)]


async def test_pods_whose_creation_nobody_has_seen_yet_are_not_made_twice() -> None:
    world = World()

    def lose(number: int, call: str) -> None:
        if call == f"POST {PODS_PATH}":
            raise Unavailable(503, "Unavailable", "the answer is lost")

    put_pool(world, replicas=3)
    world.see()
    world.blind = True
    world.api.after = lose
    await world.wait(30)
    assert len(pods(world)) <= 3

    world.blind = False
    world.api.after = lambda number, call: None
    await world.wait(60)
    assert len(waiting(world)) == 3


async def test_a_pod_that_never_answers_its_claim_is_given_up() -> None:
    world = World()
    world.kubelet = run_it_deaf_but_ready
    await filled(world)
    world.kubelet = run_it
    put_sandbox(world)
    await world.wait(3)
    # Then it is said that somebody waits.
    assert ready(world) == ("Starting", "Starting")

    await world.wait(120)
    assert world.status["startFailures"] >= 1


FAILED = {
    "phase": "Failed",
    "containerStatuses": [
        {
            "name": "sandbox",
            "state": {"terminated": {"exitCode": 137, "reason": "Error", "finishedAt": at(0)}},
        }
    ],
}


def run_it_deaf_but_ready(world: World, pod: Json) -> None:
    run_it(world, pod)
    del world.runtimes[uid_of(pod)]


def unavailable(path: str) -> None:
    raise Unavailable(503, "Unavailable", "no answer")


def hook(world: World, verb: str, action: Callable[[str], object], *, moment: str = "before") -> None:
    """The first time that the operator does this to a warm pod."""
    done: list[str] = []

    def watch(number: int, call: str) -> None:
        if not done and call.startswith(f"{verb} {PODS_PATH}/python-"):
            done.append(call)
            action(call.partition(" ")[2])

    setattr(world.api, moment, watch)


def successes(world: World) -> list[str]:
    """The claims that the API server took."""
    return [
        obj["metadata"]["name"]
        for kind, obj in world.api.log
        if kind == "MODIFIED"
        and obj["kind"] == "Pod"
        and "sandpod.dev/claimed-at" in obj["metadata"]["annotations"]
    ]
