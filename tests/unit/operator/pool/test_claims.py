"""A sandbox takes a warm pod, in the cluster in memory: what it costs, and when it gets none."""

import pytest
from sandpod_crds.errors import Forbidden
from sandpod_operator.objects import Json

from tests.support.operator_objects import installation
from tests.support.operator_world import World, crash_it, hold_it, run_it
from tests.support.pool_world import (
    PODS_PATH,
    POOL_PATH,
    TEMPLATE_PATH,
    calls_about,
    claimed_by,
    condition,
    filled,
    pods,
    pool_status,
    put_pool,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")
SECRET = "/api/v1/namespaces/team/secrets/keys"
READABLE = installation(pools={"readSecrets": ["team"]})
WITH_SECRET: Json = {
    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}}]
}


async def test_a_claim_costs_one_patch_of_the_pod_and_one_of_the_status() -> None:
    world = await filled(World())

    path = put_sandbox(world)
    await world.settle()

    assert ready(world) == RUNNING
    pod = claimed_by(world)[0]["metadata"]["name"]
    assert calls_about(world, pod) == [f"PATCH {PODS_PATH}/{pod}"]
    assert calls_about(world, "sandboxes/") == [f"PATCH {path}/status"]
    assert calls_about(world, "/events") == []
    status = world.status
    assert (status["podName"], status["pool"]) == (pod, "python")


async def test_a_claimed_pod_is_the_sandboxs_by_owner_and_labels() -> None:
    world = await filled(World())
    put_sandbox(world)
    await world.settle()

    metadata = claimed_by(world)[0]["metadata"]

    assert [owner["kind"] for owner in metadata["ownerReferences"]] == ["Sandbox"]
    assert metadata["labels"]["sandpod.dev/sandbox-uid"] == world.sandbox["metadata"]["uid"]
    assert metadata["labels"]["app.kubernetes.io/instance"] == "box"
    assert metadata["labels"]["sandpod.dev/protected"] == "true"
    # Behind the pool's wall
    assert metadata["labels"]["sandpod.dev/network"].startswith(pool_uid(world))


async def test_the_pool_fills_up_again_and_counts() -> None:
    world = await filled(World())

    put_sandbox(world)
    await world.settle()
    await world.wait(3)

    status = pool_status(world)
    assert len(waiting(world)) == 2
    assert (status["replicas"], status["readyReplicas"], status["claimed"]) == (2, 2, 1)


async def test_a_converged_pool_costs_nothing_however_often_it_is_looked_at() -> None:
    world = await filled(World())

    for _ in range(3):
        world.pool_queue.add(next(iter(world.store.pools)))
        await world.settle()
    await world.wait(3600)
    world.boot()
    await world.settle()

    assert world.api.calls == []


async def test_every_sandbox_gets_a_pod_of_its_own() -> None:
    world = await filled(World(), replicas=3)

    for name in ("one", "two", "three"):
        put_sandbox(world, name)
    await world.settle()

    names = [claimed_by(world, name)[0]["metadata"]["name"] for name in ("one", "two", "three")]
    assert len(set(names)) == 3
    assert [ready(world, name) for name in ("one", "two", "three")] == [RUNNING] * 3


async def test_an_empty_pool_is_followed_by_a_cold_start_and_says_so() -> None:
    world = World()
    world.kubelet = hold_it
    put_pool(world)
    await world.settle()
    put_sandbox(world)
    world.kubelet = lambda world, pod: run_it(world, pod) if pod["metadata"]["name"] == "box" else None
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"] == "box"
    assert "pool" not in world.status
    assert "PoolEmpty" in world.events
    assert world.metrics.claims.value(outcome="PoolEmpty") == 1


async def test_while_it_starts_cold_the_condition_says_why() -> None:
    world = World()
    put_pool(world, replicas=0)
    world.kubelet = lambda world, pod: None
    put_sandbox(world)
    await world.settle()

    assert ready(world) == ("Starting", "StartingCold")
    message = next(each for each in world.status["conditions"] if each["type"] == "Ready")["message"]
    assert message.startswith("The pod box is starting. The pool python has no pod that is ready;")


@pytest.mark.parametrize(
    "own",
    [
        {"image": "other:1"},
        {"resources": {"limits": {"memory": "4Gi"}}},
        {"isolation": "Strict"},
        {"nodeSelector": {"disk": "fast"}},
        {"workspace": {"size": "1Gi"}},
        {"podTemplate": {"metadata": {"labels": {"team": "red"}}}},
        {"env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
    ],
    ids=str,
)
async def test_a_sandbox_that_needs_another_pod_starts_cold(own: Json) -> None:
    world = await filled(World())

    put_sandbox(world, spec=own)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "PoolMismatch" in world.events
    assert len(waiting(world)) == 2


@pytest.mark.parametrize(
    "own",
    [
        {"env": [{"name": "A", "value": "b"}]},
        {"sleepAfter": "1h"},
        {"keepAlive": True},
        {"processes": [{"name": "web", "command": "serve"}]},
        {"lifetime": {"maxAge": "8h"}},
        {"network": {"egress": "Internet"}},
    ],
    ids=str,
)
async def test_what_comes_with_the_bind_does_not_keep_a_sandbox_from_a_warm_pod(own: Json) -> None:
    world = await filled(World())

    put_sandbox(world, spec=own)
    await world.settle()

    assert ready(world) == RUNNING
    assert len(claimed_by(world)) == 1
    assert len(calls_about(world, "sandboxes/")) == 1


async def test_a_sandbox_with_another_network_builds_its_wall_before_it_takes_a_pod() -> None:
    world = await filled(World())

    path = put_sandbox(world, spec={"network": {"egress": "None"}})
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]
    assert pod["labels"]["sandpod.dev/network"] == world.sandbox["metadata"]["uid"]
    wall = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/box-sandbox"
    assert wall in world.api.objects
    order = [f"POST {wall.rpartition('/')[0]}", f"PATCH {PODS_PATH}/{pod['name']}", f"PATCH {path}/status"]
    assert [call for call in world.api.calls if call in order] == order


async def test_a_network_that_changes_later_moves_the_pod_behind_a_wall_of_its_own() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()

    world.api.change(path, {"spec": {"network": {"egress": "None"}}})
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]
    assert pod["labels"]["sandpod.dev/network"] == world.sandbox["metadata"]["uid"]


async def test_the_pools_wall_stands_as_long_as_somebody_is_behind_it() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    [wall] = walls(world)

    world.api.vanish(POOL_PATH)
    await world.settle()
    assert walls(world) == [wall]
    assert waiting(world) == []
    assert ready(world) == RUNNING

    world.api.vanish(path)
    await world.settle()
    assert walls(world) == []


async def test_a_changed_network_of_the_template_is_another_wall() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    before = set(walls(world))

    world.api.change(TEMPLATE_PATH, {"spec": {"network": {"egress": "None"}}})
    await world.wait(5)
    assert before < set(walls(world))
    assert len(walls(world)) == 2
    assert {pod["metadata"]["labels"]["sandpod.dev/network"] for pod in waiting(world)}.isdisjoint(
        {pod["metadata"]["labels"]["sandpod.dev/network"] for pod in claimed_by(world)}
    )

    world.api.vanish(path)
    await world.settle()
    assert len(walls(world)) == 1


async def test_a_secret_comes_with_the_bind() -> None:
    world = await filled(World(READABLE))
    world.api.put(SECRET, {"kind": "Secret", "metadata": meta("keys"), "data": {"token": "cw=="}})

    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert world.runtimes[claimed_by(world)[0]["metadata"]["uid"]].env == {"TOKEN": "s"}
    # One read, and the two writes.
    assert calls_about(world, SECRET) == [f"GET {SECRET}"]
    assert len(calls_about(world, "sandboxes/")) == 1


async def test_withheld_secrets_are_followed_by_a_cold_start_that_says_so() -> None:
    world = await filled(World())

    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "SecretsWithheld" in world.events
    assert calls_about(world, SECRET) == []


async def test_secrets_that_rbac_withholds_are_withheld_too() -> None:
    world = await filled(World(READABLE))

    def forbid(number: int, call: str) -> None:
        if call == f"GET {SECRET}":
            raise Forbidden(403, "Forbidden", "no")

    world.api.before = forbid
    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert "SecretsWithheld" in world.events


async def test_a_secret_that_is_missing_is_the_kubelets_to_tell() -> None:
    world = await filled(World(READABLE))

    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "SecretsUnusable" in world.events
    assert len(waiting(world)) == 2


async def test_a_pool_whose_template_needs_withheld_secrets_says_so() -> None:
    world = World()
    put_pool(world, template=WITH_SECRET)
    await world.settle()

    assert condition(world, "SecretsReadable") == ("False", "Withheld")
    # Nothing of it is in the pods, which may wait longer than a secret lives.
    assert "TOKEN" not in str(waiting(world))


async def test_a_workspace_is_the_warm_pods_own_and_becomes_the_sandboxs() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})

    put_sandbox(world)
    await world.settle()

    pod = claimed_by(world)[0]["metadata"]["name"]
    volume = f"/api/v1/namespaces/team/persistentvolumeclaims/{pod}-workspace"
    assert world.status["workspaceClaim"] == f"{pod}-workspace"
    assert world.api.objects[volume]["metadata"]["ownerReferences"][0]["kind"] == "Sandbox"
    # After the user is served
    assert world.api.calls.index(f"PATCH {volume}") > world.api.calls.index(
        calls_about(world, "sandboxes/box/status")[0]
    )
    assert len(calls_about(world, "persistentvolumeclaims", "box-workspace")) == 0


async def test_after_a_sleep_a_sandbox_has_its_own_volume_again_and_no_other() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi"}})
    path = put_sandbox(world)
    await world.settle()
    volume = world.status["workspaceClaim"]

    world.fall_asleep(claimed_by(world)[0]["metadata"]["uid"])
    await world.settle()
    assert ready(world)[0] == "Asleep"
    world.api.change(path, {"metadata": {"annotations": {"sandpod.dev/wake-requested-at": "now"}}})
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"] == "box"
    assert world.status["workspaceClaim"] == volume
    assert world.pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == volume
    assert len(waiting(world)) == 2


async def test_without_a_workspace_a_wake_takes_a_warm_pod_too() -> None:
    world = await filled(World())
    path = put_sandbox(world)
    await world.settle()
    world.fall_asleep(claimed_by(world)[0]["metadata"]["uid"])
    await world.settle()

    world.api.change(path, {"metadata": {"annotations": {"sandpod.dev/wake-requested-at": "now"}}})
    await world.settle()

    assert ready(world) == RUNNING
    assert world.status["podName"].startswith("python-")


async def test_a_retained_volume_of_a_claim_is_found_again_by_nobody_else() -> None:
    template = {"workspace": {"size": "1Gi", "reclaim": "Retain"}}
    world = await filled(World(), template=template)
    path = put_sandbox(world)
    await world.settle()
    volume = f"/api/v1/namespaces/team/persistentvolumeclaims/{world.status['workspaceClaim']}"
    assert "ownerReferences" not in world.api.objects[volume]["metadata"]

    world.api.vanish(path)
    await world.settle()
    await world.wait(700)

    assert volume in world.api.objects


async def test_min_ready_age_keeps_young_pods_from_being_claimed() -> None:
    world = World()
    put_pool(world, minReadyAge="30s")
    await world.settle()
    put_sandbox(world, "early")
    await world.settle()
    assert claimed_by(world, "early") == []

    await world.wait(31)
    assert condition(world, "Ready") == ("True", "AllReady")
    put_sandbox(world, "late")
    await world.settle()
    assert len(claimed_by(world, "late")) == 1


async def test_a_claim_that_the_api_server_refuses_is_followed_by_a_cold_start() -> None:
    world = await filled(World())

    def forbid(number: int, call: str) -> None:
        if call.startswith(f"PATCH {PODS_PATH}/python-"):
            raise Forbidden(403, "Forbidden", "a webhook says no")

    world.api.before = forbid
    put_sandbox(world)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "ClaimRefused" in world.events


async def test_a_template_that_crashes_is_no_hot_loop() -> None:
    world = World()
    world.kubelet = crash_it
    put_pool(world, replicas=10)

    await world.wait(600)

    # Four at a time, about once a minute.
    assert len(calls_about(world, "POST", "pods")) <= 4 * 11
    assert condition(world, "Ready") == ("False", "PodsFail")

    world.kubelet = run_it
    await world.wait(90)
    assert condition(world, "Ready") == ("True", "AllReady")


async def test_a_refused_pod_is_tried_ever_more_slowly() -> None:
    world = World()

    def forbid(number: int, call: str) -> None:
        if call == f"POST {PODS_PATH}":
            raise Forbidden(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q')

    world.api.before = forbid
    put_pool(world, replicas=10)
    await world.wait(3600)

    assert len(calls_about(world, "POST")) <= 20
    assert condition(world, "Ready") == ("False", "QuotaExceeded")


async def test_a_missing_template_is_a_condition_and_heals() -> None:
    world = World()
    put_pool(world)
    template = world.api.objects[TEMPLATE_PATH]
    world.api.vanish(TEMPLATE_PATH)
    await world.settle()
    assert condition(world, "TemplateFound") == ("False", "NotFound")
    assert pods(world) == []

    world.api.put(TEMPLATE_PATH, template)
    await world.wait(2)
    assert condition(world, "Ready") == ("True", "AllReady")


async def test_a_changed_template_replaces_the_waiting_pods_and_leaves_the_claimed_ones() -> None:
    world = await filled(World(), replicas=4)
    put_sandbox(world)
    await world.settle()
    await world.wait(3)
    mine = claimed_by(world)[0]["metadata"]["uid"]

    world.api.change(TEMPLATE_PATH, {"spec": {"image": "new:1"}})
    await world.wait(10)

    assert {pod["spec"]["containers"][0]["image"] for pod in waiting(world)} == {"new:1"}
    assert condition(world, "Ready") == ("True", "AllReady")
    assert claimed_by(world)[0]["metadata"]["uid"] == mine


async def test_scaling_down_and_up_and_deleting() -> None:
    world = await filled(World(), replicas=3)
    put_sandbox(world)
    await world.settle()

    world.api.change(POOL_PATH, {"spec": {"replicas": 0}})
    await world.wait(3)
    assert waiting(world) == []
    world.api.change(POOL_PATH, {"spec": {"replicas": 5}})
    await world.wait(3)
    assert len(waiting(world)) == 5
    world.api.vanish(POOL_PATH)
    await world.settle()
    assert waiting(world) == []
    assert ready(world) == RUNNING


async def test_the_volumes_of_pods_that_are_given_up_go_too() -> None:
    world = await filled(World(), replicas=3, template={"workspace": {"size": "1Gi"}})

    world.api.change(POOL_PATH, {"spec": {"replicas": 1}})
    await world.wait(3)

    assert len([path for path in world.api.objects if "persistentvolumeclaims" in path]) == 1


def meta(name: str) -> Json:
    return {"name": name, "namespace": "team"}


def pool_uid(world: World) -> str:
    return world.api.objects[POOL_PATH]["metadata"]["uid"]


def walls(world: World) -> list[str]:
    return sorted(path for path in world.api.objects if "networkpolicies" in path and path.endswith("-pool"))
