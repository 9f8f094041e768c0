"""Others change or delete what belongs to a sandbox: its wall, its pod, its volume."""

import pytest
from sandpod_crds.errors import Forbidden, Unavailable
from sandpod_crds.names import CHILD_LABELS, LABEL_MANAGED_BY, LABEL_NETWORK, child_labels
from sandpod_operator.kinds import POD
from sandpod_operator.objects import Json, entries, uid_of
from sandpod_operator.refusals import is_labelled

from tests.support.operator_objects import KEY
from tests.support.operator_scenarios import VOLUME, create, fall_asleep, wake, with_workspace
from tests.support.operator_world import CLAIMS_PATH, POD_PATH, SANDBOX_PATH, World, new_sandbox

POLICY_PATH = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies/box-sandbox"
CLAIM_PATH = f"{CLAIMS_PATH}/box-workspace"
UNLABELLED = {"metadata": {"labels": {LABEL_MANAGED_BY: None}}}
RUNNING = ("Running", "True", "RuntimeAnswers")


async def test_a_wall_that_somebody_changes_or_takes_down_is_put_up_again() -> None:
    world = await with_workspace()
    wanted = world.api.objects[POLICY_PATH]["spec"]

    world.api.change(POLICY_PATH, {"spec": {"egress": [{}], "policyTypes": ["Ingress"]}})
    await world.settle()
    assert world.api.objects[POLICY_PATH]["spec"] == wanted

    world.api.vanish(POLICY_PATH)
    await world.settle()
    assert world.api.objects[POLICY_PATH]["spec"] == wanted
    assert world.ready() == RUNNING


async def test_what_somebody_adds_to_a_wall_is_taken_away_again() -> None:
    world = await with_workspace()
    wall = world.api.objects[POLICY_PATH]["spec"]

    # Behind it, nobody would be any more.
    world.api.change(POLICY_PATH, {"spec": {"podSelector": {"matchLabels": {"app": "x"}}}})
    await world.settle()

    assert world.api.objects[POLICY_PATH]["spec"] == wall


async def test_a_wall_that_somebody_puts_around_anothers_pod_is_put_right() -> None:
    world = await with_workspace()
    other = new_sandbox()
    other["metadata"]["name"] = "den"
    world.api.put(SANDBOX_PATH.replace("/box", "/den"), other)
    await world.wait(10)
    around = {LABEL_NETWORK: uid_of(world.api.objects[SANDBOX_PATH.replace("/box", "/den")])}

    world.api.change(POLICY_PATH, {"spec": {"podSelector": {"matchLabels": around}}})
    await world.settle()

    selected = world.api.objects[POLICY_PATH]["spec"]["podSelector"]["matchLabels"]
    assert selected == {LABEL_NETWORK: uid_of(world.sandbox)}


async def test_a_wall_of_an_earlier_sandbox_becomes_that_of_the_next() -> None:
    world = await with_workspace()
    theirs = world.api.objects[POLICY_PATH]
    world.api.vanish(SANDBOX_PATH)
    await create(world)
    world.api.vanish(POLICY_PATH)
    left = {name: value for name, value in theirs["metadata"].items() if name != "uid"}
    world.api.put(POLICY_PATH, {**theirs, "metadata": left})
    await world.settle()

    policy = world.api.objects[POLICY_PATH]
    assert not policy["metadata"].get("ownerReferences")
    assert policy["spec"]["podSelector"]["matchLabels"][LABEL_NETWORK] == uid_of(world.sandbox)
    assert world.ready() == RUNNING


async def test_a_wall_that_lost_its_labels_gets_them_back() -> None:
    world = await with_workspace()
    before = uid_of(world.api.objects[POLICY_PATH])
    world.api.change(POLICY_PATH, UNLABELLED)
    await world.settle()

    policy = world.api.objects[POLICY_PATH]
    assert uid_of(policy) == before
    assert policy["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "sandpod"


async def test_a_network_policy_of_somebody_else_is_never_written_over() -> None:
    world = World()
    metadata = {"name": "box-sandbox", "namespace": KEY.namespace}
    theirs: Json = {"kind": "NetworkPolicy", "metadata": metadata, "spec": {"podSelector": {}}}
    before = world.api.put(POLICY_PATH, theirs)
    world.api.put(SANDBOX_PATH, new_sandbox())

    await world.wait(60)
    assert world.ready() == ("Pending", "False", "PolicyTaken")
    assert world.api.objects[POLICY_PATH] == before
    assert POD_PATH not in world.api.objects
    assert len(world.api.calls) < 20

    world.api.vanish(POLICY_PATH)
    await world.wait(300)
    assert world.ready() == RUNNING


async def test_a_volume_that_is_kept_for_another_sandbox_is_not_taken_over() -> None:
    world = World()
    labels = {**child_labels(sandbox_name="other", sandbox_uid="gone", version="0.1.0")}
    metadata = {"name": "box-workspace", "namespace": KEY.namespace, "labels": labels}
    spec = {"resources": {"requests": {"storage": "1Gi"}}}
    world.api.put(CLAIM_PATH, {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    await create(world, VOLUME)

    assert world.ready() == ("Pending", "False", "ClaimTaken")
    assert POD_PATH not in world.api.objects
    assert world.api.objects[CLAIM_PATH]["metadata"]["labels"] == labels

    world.api.vanish(CLAIM_PATH)
    await world.settle()
    assert world.ready() == RUNNING


async def test_a_pod_is_brought_back_behind_its_wall() -> None:
    world = await with_workspace()
    world.api.change(POD_PATH, {"metadata": {"labels": {LABEL_NETWORK: "none"}}})
    await world.settle()

    assert world.pod["metadata"]["labels"][LABEL_NETWORK] == uid_of(world.sandbox)


async def test_a_pod_whose_labels_somebody_took_off_ends_when_its_sandbox_is_paused() -> None:
    world = await with_workspace()
    world.api.change(POD_PATH, UNLABELLED)
    world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    await world.wait(60)

    assert world.ready() == ("Asleep", "False", "Paused")
    assert POD_PATH not in world.api.objects


@pytest.mark.parametrize("label", CHILD_LABELS)
async def test_a_pod_that_somebody_takes_a_label_off_goes_on(label: str) -> None:
    world = await with_workspace()
    before = uid_of(world.pod)

    world.api.change(POD_PATH, {"metadata": {"labels": {label: None}}})
    await world.wait(60)

    assert world.ready() == RUNNING
    assert uid_of(world.pod) == before
    assert world.pod["metadata"]["labels"][label] == CHILD_LABELS[label]


async def test_its_labels_are_not_given_to_another_pod_of_its_name() -> None:
    world = await with_workspace()
    world.api.vanish(POD_PATH)
    metadata = {"name": KEY.name, "namespace": KEY.namespace}
    theirs: Json = {"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"image": "theirs:1"}]}}
    world.api.put(POD_PATH, theirs)
    await world.wait(60)

    assert "labels" not in world.pod["metadata"]
    assert world.ready() == ("Pending", "False", "NameTaken")


async def test_a_pod_that_may_not_be_labelled_again_ends_all_the_same_when_its_sandbox_is_paused() -> None:
    world = await with_workspace()

    def no_label(_: int, call: str) -> None:
        if call == f"PATCH {POD_PATH}":
            raise Forbidden(403, "Forbidden", "not allowed")

    world.api.before = no_label
    world.api.change(POD_PATH, UNLABELLED)
    world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    await world.wait(60)

    assert world.ready() == ("Asleep", "False", "Paused")
    assert POD_PATH not in world.api.objects


async def test_a_pod_that_somebody_takes_the_owner_off_gets_it_back() -> None:
    world = await with_workspace()
    before = uid_of(world.pod)

    world.api.change(POD_PATH, {"metadata": {"ownerReferences": None}})
    await world.settle()

    assert world.ready() == RUNNING
    assert uid_of(world.pod) == before
    assert [each["uid"] for each in world.pod["metadata"]["ownerReferences"]] == [uid_of(world.sandbox)]


async def test_a_pod_that_may_not_get_its_owner_back_is_told_of() -> None:
    world = await with_workspace()

    def no_owner(_: int, call: str) -> None:
        if call == f"PATCH {POD_PATH}":
            raise Forbidden(403, "Forbidden", "not allowed")

    world.api.before = no_owner
    world.api.change(POD_PATH, {"metadata": {"ownerReferences": None}})
    await world.wait(60)
    world.api.calls.clear()
    await world.wait(3600)

    assert world.ready() == RUNNING
    assert len(world.api.calls) < 60
    assert "Forbidden" in world.events

    world.api.before = lambda number, call: None
    await world.wait(301)
    assert [each["uid"] for each in world.pod["metadata"]["ownerReferences"]] == [uid_of(world.sandbox)]


async def test_a_label_that_cannot_be_put_back_for_a_moment_is_put_back_after_it() -> None:
    world = await with_workspace()
    failures = [Unavailable(503, "Unavailable", "for a moment")]

    def fail_once(_: int, call: str) -> None:
        if call == f"PATCH {POD_PATH}" and failures:
            raise failures.pop()

    world.api.before = fail_once
    world.api.change(POD_PATH, UNLABELLED)
    await world.wait(10)

    assert not failures
    assert is_labelled(world.pod)
    assert world.ready() == RUNNING


async def test_a_pod_that_somebody_takes_all_off_at_once_is_found() -> None:
    world = await with_workspace()
    before = uid_of(world.pod)

    world.api.change(
        POD_PATH, {"metadata": {"ownerReferences": None, "labels": UNLABELLED["metadata"]["labels"]}}
    )
    await world.wait(60)

    assert world.ready() == RUNNING
    assert uid_of(world.pod) == before
    assert [each["uid"] for each in world.pod["metadata"]["ownerReferences"]] == [uid_of(world.sandbox)]


async def test_whoever_may_not_look_for_the_pod_asks_ever_more_slowly() -> None:
    world = await with_workspace()

    def no_look(_: int, call: str) -> None:
        if call == f"GET {POD_PATH}":
            raise Forbidden(403, "Forbidden", "not allowed")

    world.api.before = no_look
    world.api.change(POD_PATH, UNLABELLED)
    world.api.calls.clear()
    await world.wait(60)

    assert 0 < len(world.api.calls) < 30


async def test_a_claim_that_only_lost_its_labels_is_not_told_as_gone() -> None:
    world = await with_workspace()
    before = uid_of(world.api.objects[CLAIM_PATH])
    world.api.change(CLAIM_PATH, UNLABELLED)
    await world.settle()
    world.api.vanish(POD_PATH)
    await world.wait(60)

    assert world.ready() == RUNNING
    assert uid_of(world.api.objects[CLAIM_PATH]) == before
    assert "ClaimMissing" not in world.events


async def test_files_that_went_with_a_claim_while_the_pod_waits_for_a_node_are_told_of() -> None:
    world = await with_workspace()
    await fall_asleep(world)
    world.kubelet = lambda world, pod: None
    await wake(world)
    world.api.vanish(CLAIM_PATH)
    await world.wait(5)

    assert CLAIM_PATH in world.api.objects
    assert "ClaimMissing" in world.events


async def test_a_volume_whose_labels_somebody_took_off_keeps_its_files_for_the_next_start() -> None:
    world = await with_workspace()
    before = uid_of(world.api.objects[CLAIM_PATH])
    await fall_asleep(world)

    world.api.change(CLAIM_PATH, UNLABELLED)
    await world.settle()
    await wake(world)

    assert world.ready() == RUNNING
    assert uid_of(world.api.objects[CLAIM_PATH]) == before


async def test_a_volume_that_somebody_deletes_while_it_sleeps_is_told_of_and_made_again() -> None:
    world = await with_workspace()
    await fall_asleep(world)

    world.api.vanish(CLAIM_PATH)
    await world.settle()
    workspace = next(c for c in world.status["conditions"] if c["type"] == "WorkspaceReady")
    assert (workspace["status"], workspace["reason"]) == ("False", "ClaimMissing")
    assert "ClaimMissing" in world.events

    await wake(world)
    assert world.ready() == RUNNING
    assert CLAIM_PATH in world.api.objects


async def test_a_claim_that_is_gone_before_the_watch_says_so_is_patched_once() -> None:
    world = await with_workspace()
    await fall_asleep(world)
    world.blind = True
    world.api.vanish(CLAIM_PATH)
    changed = world.api.change(SANDBOX_PATH, {"spec": {"workspace": {"size": "2Gi"}}})
    world.store.sandboxes.observe(changed)
    world.api.calls.clear()
    world.queue.add(KEY)
    await world.wait(60)

    assert world.api.calls.count(f"PATCH {CLAIM_PATH}") == 1


async def test_a_pod_that_was_believed_gone_when_its_sandbox_is_paused_ends_too() -> None:
    world = await with_workspace()
    world.store.deleted(POD, KEY, uid=uid_of(world.pod))
    world.api.change(SANDBOX_PATH, {"spec": {"paused": True}})
    await world.wait(60)

    assert world.ready() == ("Asleep", "False", "Paused")
    assert POD_PATH not in world.api.objects


async def waiting_for_its_volume() -> World:
    world = World()
    world.has_volumes = False
    await create(world, VOLUME)
    assert world.ready()[0] != "Running"
    return world


async def test_a_volume_that_somebody_deletes_while_the_pod_waits_for_it_is_made_again() -> None:
    world = await waiting_for_its_volume()
    before = uid_of(world.pod)

    world.api.vanish(CLAIM_PATH)
    await world.settle()
    assert CLAIM_PATH in world.api.objects
    world.has_volumes = True
    await world.wait(5)

    assert world.ready() == RUNNING
    assert uid_of(world.pod) == before


async def test_one_that_may_not_be_made_again_now_is_told_of_and_made_later() -> None:
    world = await waiting_for_its_volume()
    before = uid_of(world.pod)

    def no_volume(_: int, call: str) -> None:
        if call == f"POST {CLAIMS_PATH}":
            raise Forbidden(403, "Forbidden", f"{call}: exceeded quota: small")

    world.api.before = no_volume
    world.api.vanish(CLAIM_PATH)
    world.has_volumes = True
    await world.wait(600)
    workspace = next(c for c in entries(world.status, "conditions") if c["type"] == "WorkspaceReady")
    assert (workspace["status"], workspace["reason"]) == ("False", "QuotaExceeded")
    assert uid_of(world.pod) == before
    world.api.calls.clear()
    await world.wait(600)
    assert len(world.api.calls) <= 40

    world.api.before = lambda number, call: None
    await world.wait(60)

    assert world.ready() == RUNNING
    assert uid_of(world.pod) == before
