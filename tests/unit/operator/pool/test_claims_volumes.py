"""Warm pods and volumes: whose a claimed pod's files are, also after a sleep."""

import pytest
from sandpod_crds.errors import Forbidden, Unavailable
from sandpod_crds.names import LABEL_INSTANCE, LABEL_POOL_UID
from sandpod_operator.objects import Json, controller, section
from sandpod_operator.pods import ANNOTATION_POOL

from tests.support.operator_world import CLAIMS_PATH, SANDBOX_PATH, World, new_sandbox
from tests.support.pool_world import (
    OURS,
    PODS_PATH,
    POOL_PATH,
    TEMPLATE_PATH,
    calls_about,
    claimed_by,
    filled,
    put_pool,
    put_pool_alone,
    put_sandbox,
    ready,
    waiting,
)

RUNNING = ("Running", "RuntimeAnswers")
WORKSPACE: Json = {"workspace": {"size": "1Gi"}}


def handing_over_refused(number: int, call: str) -> None:
    if call.startswith("PATCH") and "/persistentvolumeclaims/" in call:
        raise Forbidden(403, "Forbidden", "a webhook says no")


def nothing(number: int, call: str) -> None:
    pass


def put_alone(world: World, name: str, spec: Json) -> str:
    """A sandbox of no pool."""
    sandbox = new_sandbox(spec)
    sandbox["metadata"]["name"] = name
    path = f"{OURS}/sandboxes/{name}"
    world.api.put(path, sandbox)
    return path


def volume_of(world: World, name: str = "box") -> str:
    status = section(world.api.objects[f"{OURS}/sandboxes/{name}"], "status")
    return f"{CLAIMS_PATH}/{status['workspaceClaim']}"


def keeper(world: World, volume: str) -> tuple[str, str, bool]:
    """Whose owner and whose label a volume has, and whether it is a pool's."""
    metadata = world.api.objects[volume]["metadata"]
    labels = metadata["labels"]
    of_pool = LABEL_POOL_UID in labels
    assert of_pool == (ANNOTATION_POOL in section(metadata, "annotations"))
    return controller(metadata).get("name", ""), labels.get(LABEL_INSTANCE, ""), of_pool


async def claimed(template: Json = WORKSPACE) -> tuple[World, str]:
    """A sandbox works in a warm pod with the volume that the pod has brought."""
    world = await filled(World(), template=template)
    world.api.calls.clear()
    put_sandbox(world)
    await world.wait(40)
    assert ready(world) == RUNNING
    return world, volume_of(world)


async def asleep(world: World) -> None:
    world.fall_asleep(claimed_by(world)[0]["metadata"]["uid"])
    await world.settle()
    assert ready(world)[0] == "Asleep"


async def test_a_volume_comes_with_the_warm_pod_and_costs_the_claim_no_write() -> None:
    world, volume = await claimed()

    assert volume == f"{CLAIMS_PATH}/{claimed_by(world)[0]['metadata']['name']}-workspace"
    assert calls_about(world, volume) == []
    assert calls_about(world, "persistentvolumeclaims", "box-workspace") == []
    # Of the pod and of the status
    assert len(calls_about(world, "PATCH", "/pods/")) == len(calls_about(world, "sandboxes/box/status")) == 1


async def test_it_is_written_down_as_the_sandboxs_when_the_pod_is_gone() -> None:
    world, volume = await claimed()
    assert keeper(world, volume) == ("", "", True)

    await asleep(world)

    assert keeper(world, volume) == ("box", "box", False)
    assert len(calls_about(world, volume)) == 1


@pytest.mark.parametrize("last_words", [True, False], ids=["asleep", "deleted by force"])
async def test_it_is_so_too_when_the_template_has_lost_its_workspace_meanwhile(last_words: bool) -> None:
    world, volume = await claimed()
    world.api.change(TEMPLATE_PATH, {"spec": {"workspace": None}})
    await world.wait(20)

    if last_words:
        await asleep(world)
    else:
        world.api.vanish(f"{PODS_PATH}/{claimed_by(world)[0]['metadata']['name']}")
    await world.wait(100)

    assert keeper(world, volume) == ("box", "box", False)


async def test_a_volume_that_is_to_stay_is_written_down_at_once() -> None:
    world, volume = await claimed({"workspace": {"size": "1Gi", "reclaim": "Retain"}})

    assert keeper(world, volume) == ("", "box", False)
    # After the user is served
    status = calls_about(world, "sandboxes/box/status")[0]
    assert world.api.calls.index(f"PATCH {volume}") > world.api.calls.index(status)


async def test_it_is_so_too_when_it_is_to_stay_from_now_on() -> None:
    world, volume = await claimed()

    world.api.change(SANDBOX_PATH, {"spec": {"workspace": {"reclaim": "Retain"}}})
    await world.settle()

    assert keeper(world, volume) == ("", "box", False)


async def test_one_that_is_to_stay_and_could_not_be_written_down_in_time_stays_with_its_sandbox() -> None:
    world = await filled(World(), template={"workspace": {"size": "1Gi", "reclaim": "Retain"}})
    world.api.before = handing_over_refused
    put_sandbox(world)
    await world.wait(40)
    volume = volume_of(world)
    await asleep(world)
    assert keeper(world, volume) == ("", "", True)

    world.api.before = nothing
    world.api.calls.clear()
    await world.wait(700)

    assert keeper(world, volume) == ("", "box", False)
    assert calls_about(world, volume) == [f"PATCH {volume}"]


async def test_the_volume_goes_with_a_sandbox_that_is_deleted_while_it_runs_and_not_before_its_pod() -> None:
    world, volume = await claimed()
    pod = f"{PODS_PATH}/{claimed_by(world)[0]['metadata']['name']}"
    world.api.change(pod, {"metadata": {"finalizers": ["example.com/slow"]}})

    world.api.vanish(SANDBOX_PATH)
    await world.wait(100)
    assert volume in world.api.objects
    assert f"DELETE {volume}" not in world.api.calls

    world.api.vanish(pod)
    await world.settle()
    assert volume not in world.api.objects


@pytest.mark.parametrize("pool_too", [False, True], ids=["the sandbox", "the pool too"])
async def test_it_goes_as_well_when_that_was_deleted_while_no_operator_ran(pool_too: bool) -> None:
    world, volume = await claimed()
    pod = f"{PODS_PATH}/{claimed_by(world)[0]['metadata']['name']}"

    world.api.vanish(SANDBOX_PATH)
    world.api.vanish(pod)
    if pool_too:
        world.api.vanish(POOL_PATH)
    world.boot()
    await world.wait(40)

    assert volume not in world.api.objects
    left = [path for path in world.api.objects if path.startswith(CLAIMS_PATH)]
    assert len(left) == (0 if pool_too else 2)


async def test_a_pool_that_goes_takes_the_volumes_that_wait_and_no_other() -> None:
    world, volume = await claimed()

    world.api.vanish(POOL_PATH)
    await world.wait(100)

    assert ready(world) == RUNNING
    assert [path for path in world.api.objects if path.startswith(CLAIMS_PATH)] == [volume]
    # What is to become of it, the pool's template may say, when there is one again.
    await asleep(world)
    await world.wait(1000)
    assert keeper(world, volume) == ("", "", True)
    put_pool_alone(world, replicas=0)
    await world.settle()
    assert keeper(world, volume) == ("box", "box", False)


async def test_a_volume_is_kept_while_a_sandbox_sleeps_that_could_not_write_it_down() -> None:
    world, volume = await claimed()
    world.api.before = handing_over_refused
    await asleep(world)
    world.boot()
    await world.wait(1000)
    assert keeper(world, volume) == ("", "", True)

    world.ask_awake("1")
    await world.wait(40)

    assert ready(world) == RUNNING
    assert world.pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] in volume


@pytest.mark.parametrize("where", [TEMPLATE_PATH, SANDBOX_PATH], ids=["its template", "its own"])
async def test_that_it_is_written_down_may_be_refused_while_the_workspace_goes_out_of_the_spec(
    where: str,
) -> None:
    world, volume = await claimed()
    world.api.before = handing_over_refused
    world.api.change(where, {"spec": {"workspace": None, "poolRef": None}})
    await world.wait(20)
    await asleep(world)
    await world.wait(100)
    assert keeper(world, volume) == ("", "", True)
    world.ask_awake("1")
    await world.wait(100)
    assert ready(world) == RUNNING
    assert keeper(world, volume) == ("", "", True)

    world.api.before = nothing
    await world.wait(700)
    assert keeper(world, volume) == ("box", "box", False)


@pytest.mark.parametrize("last_words", [True, False], ids=["asleep", "deleted by force"])
async def test_it_is_kept_by_a_sandbox_that_is_to_have_another_which_is_in_use(last_words: bool) -> None:
    world, volume = await claimed()
    put_alone(world, "other", WORKSPACE)
    await world.wait(40)
    world.api.change(SANDBOX_PATH, {"spec": {"workspace": {"claimName": "other-workspace"}}})
    await world.wait(10)

    if last_words:
        await asleep(world)
        world.ask_awake("1")
    else:
        world.api.vanish(f"{PODS_PATH}/{claimed_by(world)[0]['metadata']['name']}")
    await world.wait(100)

    assert ready(world) == ("Pending", "ClaimInUse")
    assert keeper(world, volume) == ("box", "box", False)


async def test_a_sandbox_may_name_the_volume_that_it_has() -> None:
    world, volume = await claimed()
    named = {"poolRef": None, "workspace": {"claimName": volume.rpartition("/")[2]}}
    world.api.change(SANDBOX_PATH, {"spec": named})
    world.api.vanish(f"{PODS_PATH}/{claimed_by(world)[0]['metadata']['name']}")
    await world.wait(100)

    assert ready(world) == RUNNING
    assert world.pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] in volume


async def test_to_name_anothers_volume_is_not_to_have_it() -> None:
    world, volume = await claimed()
    thief = put_alone(world, "thief", {"workspace": {"claimName": volume.rpartition("/")[2]}})
    await world.wait(20)
    assert "workspaceClaim" not in world.api.objects[thief]["status"]

    world.api.change(thief, {"spec": {"workspace": {"size": "1Gi", "claimName": None}}})
    world.api.before = handing_over_refused
    await asleep(world)
    await world.wait(100)

    assert world.status["workspaceClaim"] in volume
    assert world.api.objects[thief]["status"]["workspaceClaim"] == "thief-workspace"


async def test_to_name_a_volume_that_waits_does_not_keep_it_from_going() -> None:
    world = await filled(World(), template=WORKSPACE)
    volume = f"{waiting(world)[0]['metadata']['name']}-workspace"
    put_alone(world, "wisher", {"workspace": {"claimName": volume}})
    await world.wait(20)

    world.api.vanish(POOL_PATH)
    await world.wait(100)

    assert [path for path in world.api.objects if path.startswith(CLAIMS_PATH)] == []


async def test_a_volume_that_may_not_be_deleted_does_not_stop_its_pool() -> None:
    world, volume = await claimed()

    def no_deletion(number: int, call: str) -> None:
        if call.startswith("DELETE") and "/persistentvolumeclaims/" in call:
            raise Forbidden(403, "Forbidden", "a webhook says no")

    world.api.before = no_deletion
    world.api.vanish(SANDBOX_PATH)
    await world.wait(100)
    world.api.change(POOL_PATH, {"spec": {"replicas": 4}})
    await world.wait(200)

    assert len(waiting(world)) == 4
    world.api.before = nothing
    await world.wait(700)
    assert volume not in world.api.objects


async def test_what_the_template_says_of_its_files_holds_also_when_it_is_back_too_late() -> None:
    template: Json = {"workspace": {"size": "1Gi", "reclaim": "Retain"}}
    world = await filled(World(), template=template)
    world.api.before = handing_over_refused
    put_sandbox(world)
    await world.wait(5)
    volume = volume_of(world)
    world.api.before = nothing
    world.api.vanish(TEMPLATE_PATH)
    world.api.vanish(f"{PODS_PATH}/{claimed_by(world)[0]['metadata']['name']}")
    world.boot()
    await world.wait(40)
    assert keeper(world, volume) == ("", "", True)

    metadata = {"name": "python", "namespace": "team"}
    world.api.put(TEMPLATE_PATH, {"kind": "SandboxTemplate", "metadata": metadata, "spec": template})
    await world.wait(40)
    assert keeper(world, volume) == ("", "box", False)


@pytest.mark.parametrize("awake", [True, False], ids=["it waits", "its sandbox sleeps"])
async def test_a_sandbox_with_the_name_of_a_warm_pod_does_not_take_its_volume(awake: bool) -> None:
    world, volume = await claimed()
    world.api.before = handing_over_refused
    if not awake:
        await asleep(world)
    volume = f"{CLAIMS_PATH}/{waiting(world)[0]['metadata']['name']}-workspace" if awake else volume
    warm = volume.rpartition("/")[2].removesuffix("-workspace")

    put_alone(world, warm, WORKSPACE)
    await world.wait(100)

    assert ready(world, warm) == ("Pending", "NameTaken" if awake else "EarlierClaim")
    assert keeper(world, volume) == ("", "", True)
    if not awake:
        world.api.vanish(SANDBOX_PATH)
        await world.wait(40)
        assert ready(world, warm) == RUNNING
        assert keeper(world, volume) == (warm, warm, False)


async def test_the_volume_of_a_pod_whose_creation_was_not_answered_is_kept_for_it() -> None:
    world = World()

    def lose_the_answer(number: int, call: str) -> None:
        if call.startswith("POST") and call.endswith("/pods"):
            world.blind = True
            raise Unavailable(0, "Timeout", "no answer")

    world.api.after = lose_the_answer
    put_pool(world, template=WORKSPACE)
    await world.wait(2)

    assert calls_about(world, "POST", "/pods") != []
    assert calls_about(world, "DELETE", "persistentvolumeclaims") == []


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
