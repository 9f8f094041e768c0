"""In a burst of claims pods are told later whose they are: what that spares, and what happens meanwhile."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from sandpod_crds.errors import Forbidden
from sandpod_crds.names import LABEL_MANAGED_BY
from sandpod_operator.cluster import Cluster
from sandpod_operator.objects import Json, controller, section, uid_of
from sandpod_operator.observations import Key

from tests.support.lending_world import (
    AFTERWARDS,
    NAMES,
    POOL_SIZE,
    RUNNING,
    burst,
    check_the_end,
    small_pools,
    told,
)
from tests.support.pool_world import (
    OURS,
    PODS_PATH,
    POOL_PATH,
    calls_about,
    filled,
    pod_of,
    pods,
    pool_status,
    put_sandbox,
    ready,
    waiting,
)


async def test_in_a_burst_sandboxes_run_before_their_pods_are_told() -> None:
    world = await burst()

    assert {name: ready(world, name) for name in NAMES} == dict.fromkeys(NAMES, RUNNING)
    # The first ones are no burst yet.
    assert told(world) == ["a", "b"]
    assert "lending" in pool_status(world)

    await world.wait(AFTERWARDS)
    check_the_end(world)


async def test_also_then_a_claim_is_one_patch_of_the_pod_and_one_of_the_status() -> None:
    world = await burst()
    await world.wait(AFTERWARDS)

    for name in NAMES:
        pod = pod_of(world, name)["metadata"]["name"]
        assert calls_about(world, "PATCH", pod) == [f"PATCH {PODS_PATH}/{pod}"]
        assert calls_about(world, f"sandboxes/{name}/") == [f"PATCH {OURS}/sandboxes/{name}/status"]
    world.api.calls.clear()
    await world.wait(3600)
    assert world.api.calls == [], "converged means no writes"


async def test_a_pod_that_was_told_later_says_what_one_says_that_was_told_at_once() -> None:
    world = await burst()
    await world.wait(AFTERWARDS)
    first, last = (pod_of(world, name)["metadata"] for name in (NAMES[0], NAMES[-1]))

    for what in ("labels", "annotations"):
        assert last[what].keys() == first[what].keys()
    assert last["labels"]["sandpod.dev/sandbox-uid"] == controller(last)["uid"]


@pytest.mark.parametrize(
    "spec",
    [
        {"processes": [{"name": "web", "command": "serve"}]},
        {"setup": ["make"]},
        {"network": {"egress": "None"}},
        pytest.param(None, id="with a volume"),
    ],
    ids=str,
)
async def test_a_pod_in_which_something_runs_at_once_or_that_has_files_is_told_first(
    spec: Json | None,
) -> None:
    world = await burst(spec, template={"workspace": {"size": "1Gi"}} if spec is None else None)

    assert told(world) == list(NAMES)


async def test_the_pod_of_a_sandbox_that_is_deleted_goes_though_it_was_not_told() -> None:
    world = await burst()
    gone = uid_of(pod_of(world, "f"))

    world.api.vanish(f"{OURS}/sandboxes/f")
    await world.settle()

    assert gone not in {uid_of(pod) for pod in pods(world) if "deletionTimestamp" not in pod["metadata"]}
    await world.wait(AFTERWARDS)
    check_the_end(world, NAMES[:-1])


async def test_of_sandboxes_that_are_gone_nothing_is_kept_that_their_pods_were_to_be_told() -> None:
    world = await burst()
    lent = [uid_of(pod_of(world, name)) for name in NAMES if name not in told(world)]
    assert lent
    assert all(uid in world.store.pods.unwritten for uid in lent)

    for name in NAMES:
        world.api.vanish(f"{OURS}/sandboxes/{name}")
    await world.settle()

    assert not any(uid in world.store.pods.unwritten for uid in lent)


@pytest.mark.parametrize("label_comes_back", [False, True])
async def test_a_sandbox_waits_for_the_end_of_a_pod_that_loses_its_label_on_its_way_out(
    *, label_comes_back: bool
) -> None:
    world = await burst()
    pod = pod_of(world, "f")["metadata"]
    path = f"{PODS_PATH}/{pod['name']}"
    world.silent.add(pod["uid"])
    await world.api.delete(path, uid=None, version=None)
    world.api.change(path, {"metadata": {"labels": {LABEL_MANAGED_BY: None}}})
    world.see()
    if label_comes_back:
        world.api.change(path, {"metadata": {"labels": {LABEL_MANAGED_BY: pod["labels"][LABEL_MANAGED_BY]}}})

    await world.wait(5)
    assert path in world.api.objects
    assert ready(world, "f")[0] != "Running"

    # Until a pod on a node that does not answer is given up
    await world.wait(1200)
    assert path not in world.api.objects
    check_the_end(world)


async def test_nor_does_it_stay_when_there_is_a_new_sandbox_of_that_name_at_once() -> None:
    world = await burst()
    gone = uid_of(pod_of(world, "f"))

    world.api.vanish(f"{OURS}/sandboxes/f")
    put_sandbox(world, "f")
    await world.wait(AFTERWARDS)

    assert gone not in {uid_of(pod) for pod in pods(world)}
    check_the_end(world)


async def test_a_pod_that_falls_asleep_before_it_was_told_leaves_a_sandbox_that_sleeps() -> None:
    world = await burst()

    world.fall_asleep(uid_of(pod_of(world, "f")))
    await world.settle()
    assert section(world.api.objects[f"{OURS}/sandboxes/f"], "status")["phase"] == "Asleep"

    await world.wait(AFTERWARDS)
    assert section(world.api.objects[f"{OURS}/sandboxes/f"], "status")["phase"] == "Asleep"
    assert "lending" not in pool_status(world)
    assert len(pods(world)) == len(NAMES) - 1 + POOL_SIZE


async def test_a_pod_that_somebody_deletes_before_it_was_told_is_missed_at_once() -> None:
    world = await burst()
    gone = pod_of(world, "f")["metadata"]

    world.api.vanish(f"{PODS_PATH}/{gone['name']}")
    await world.settle()
    assert ready(world, "f") != RUNNING

    await world.wait(AFTERWARDS)
    assert uid_of(pod_of(world, "f")) != gone["uid"]
    check_the_end(world)


async def test_when_it_is_no_more_to_be_protected_a_pod_is_told_sooner() -> None:
    world = await burst()

    world.api.change(f"{OURS}/sandboxes/f", {"spec": {"keepAlive": True}})
    await world.settle()

    assert told(world) == ["a", "b", "f"]
    assert "sandpod.dev/protected" not in pod_of(world, "f")["metadata"]["labels"]
    world.api.calls.clear()
    await world.settle()
    assert world.api.calls == []


async def test_who_refuses_that_a_pod_is_told_stops_nobodys_work_and_is_asked_ever_more_slowly() -> None:
    world = await burst()

    def no(obj: Json) -> None:
        if obj["kind"] == "Pod" and controller(obj["metadata"]).get("kind") == "Sandbox":
            raise Forbidden(403, "Forbidden", "a webhook says no")

    world.api.admit = no
    world.api.calls.clear()
    # Its label is refused with it.
    world.api.change(f"{OURS}/sandboxes/f", {"spec": {"keepAlive": True}})
    await world.wait(600)

    assert {name: ready(world, name) for name in NAMES} == dict.fromkeys(NAMES, RUNNING)
    lent = len(NAMES) - len(["a", "b"])
    assert len(calls_about(world, "PATCH", PODS_PATH)) <= 12 * lent
    assert "Undone" not in world.events
    world.api.admit = lambda obj: None
    await world.wait(600)
    check_the_end(world)


class Between:
    """The API server, and what happens while it is at its first deletion of a pod."""

    def __init__(self, cluster: Cluster, then: Callable[[], Awaitable[None]]) -> None:
        self._cluster = cluster
        self._then: Callable[[], Awaitable[None]] | None = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def delete(self, path: str, **more: Any) -> Json:
        answer = await self._cluster.delete(path, **more)
        if self._then is not None and path.startswith(f"{PODS_PATH}/"):
            then, self._then = self._then, None
            await then()
        return answer


async def test_a_pool_that_removes_pods_leaves_those_that_were_lent_since_it_was_decided() -> None:
    world = small_pools()
    served: list[str] = []

    async def claim() -> None:
        put_sandbox(world, "g")
        world.see()
        for _ in range(2):
            await world.reconciler.attempt(Key("team", "g"))
            world.runtimes_answer()
        await world.reconciler.attempt(Key("team", "g"))
        served.append(uid_of(pod_of(world, "g")))

    world.cluster = cast("Any", Between(world.api, claim))
    world.boot()
    await burst(world=world)
    world.api.change(POOL_PATH, {"spec": {"replicas": 0}})
    await world.wait(AFTERWARDS)

    assert served == [uid_of(pod_of(world, "g"))]
    assert ready(world, "g") == RUNNING


class Meanwhile:
    """The API server, and what happens while the answer to the first look at a pod is on its way."""

    def __init__(self, cluster: Cluster, then: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._then: Callable[[str], None] | None = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def get(self, path: str, **more: Any) -> Json:
        answer = await self._cluster.get(path, **more)
        if self._then is not None and path.startswith(f"{PODS_PATH}/"):
            then, self._then = self._then, None
            then(path)
        return answer


@pytest.mark.parametrize("how", ["gone", "going"])
async def test_a_pod_that_goes_while_it_is_looked_at_is_not_lent(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    world, leaving = small_pools(), set[str]()

    def leave(path: str) -> None:
        leaving.add(uid_of(world.api.objects[path]))
        if how == "gone":
            world.api.vanish(path)
        else:
            world.api.change(path, {"metadata": {"deletionTimestamp": "2026-11-18T12:10:00Z"}})
        world.see()

    world.cluster = cast("Any", Meanwhile(world.api, leave))
    world.boot()
    await burst(world=world)

    assert len(leaving) == 1
    assert leaving.isdisjoint(uid_of(pod_of(world, name)) for name in NAMES)
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_lent_pod_that_somebody_else_has_got_is_left_to_them() -> None:
    world = await burst()
    pod = pod_of(world, "f")["metadata"]
    path = f"{PODS_PATH}/{pod['name']}"
    stranger = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": True}

    world.api.change(path, {"metadata": {"ownerReferences": [stranger]}})
    await world.wait(AFTERWARDS)

    assert ready(world, "f") == RUNNING
    assert uid_of(pod_of(world, "f")) != pod["uid"]
    assert world.api.objects[path]["metadata"]["ownerReferences"] == [stranger]


@pytest.mark.parametrize("back", [False, True], ids=["for good", "for a moment"])
async def test_a_lent_pod_whose_labels_somebody_takes_off_stays_its_sandboxs(back: bool) -> None:
    world = await burst()
    pod = pod_of(world, "f")["metadata"]
    path, label = f"{PODS_PATH}/{pod['name']}", "app.kubernetes.io/managed-by"

    world.api.change(path, {"metadata": {"labels": {label: None}}})
    if back:
        world.see()
        world.api.change(path, {"metadata": {"labels": {label: pod["labels"][label]}}})
    put_sandbox(world, "g")
    await world.wait(AFTERWARDS)

    assert uid_of(pod_of(world, "f")) == pod["uid"]
    check_the_end(world, (*NAMES, "g"))


async def test_a_pod_that_is_gone_is_not_lent_though_the_watch_has_not_told_yet() -> None:
    world = await filled(small_pools(), replicas=POOL_SIZE)
    world.blind = True
    for pod in waiting(world)[2:6]:
        world.runtimes.pop(uid_of(pod))
        world.api.vanish(f"{PODS_PATH}/{pod['metadata']['name']}")
    world.list_again()
    for name in NAMES:
        put_sandbox(world, name)
    await world.settle()

    assert {name: ready(world, name) for name in NAMES} == dict.fromkeys(NAMES, RUNNING)
    failures = [
        world.api.objects[f"{OURS}/sandboxes/{name}"]["status"].get("startFailures") for name in NAMES
    ]
    assert failures == [None] * len(NAMES)
