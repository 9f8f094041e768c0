"""What the operator knows, and how late, early and lost news change it."""

from datetime import timedelta

from sandpod_crds.names import LABEL_INSTANCE, LABEL_POOL_UID
from sandpod_operator.kinds import slim_object, slim_pod
from sandpod_operator.objects import Json, uid_of
from sandpod_operator.observations import Answer, Errand, Key, Outcome, Refusal
from sandpod_operator.reasons import Reason
from sandpod_operator.store import TOMBSTONES, Cache, Store

from tests.support.fake_clock import FakeClock
from tests.support.operator_objects import KEY, NOW, POD_UID, UID, bound, pod, sandbox


def version(obj: Json, number: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(number)}}


def known(store: Store) -> str | None:
    obj = store.pods.get(KEY)
    return obj["metadata"]["resourceVersion"] if obj is not None else None


def test_only_a_newer_version_replaces_one() -> None:
    store = Store()
    assert store.pods.observe(version(pod(), 9))
    assert not store.pods.observe(version(pod(), 9))
    assert not store.pods.observe(version(pod(), 8))
    # As numbers: as text, 10 would come before 9.
    assert store.pods.observe(version(pod(), 10))

    assert known(store) == "10"


def test_the_answer_to_a_write_is_known_before_the_watch_tells_it() -> None:
    store = Store()
    store.pods.observe(version(pod(), 9))
    store.pods.learn(version(pod(), 12))
    # The watch is still at an earlier version.
    store.pods.observe(version(pod(), 11))

    assert known(store) == "12"


def test_a_late_answer_does_not_bring_a_deleted_object_back() -> None:
    store = Store()
    store.pods.observe(version(pod(), 9))
    store.pod_deleted(KEY, uid=POD_UID)

    assert not store.pods.learn(version(pod(), 12))
    assert known(store) is None


def test_a_pod_that_regains_its_labels_is_known_again() -> None:
    store = Store()
    store.pods.observe(version(pod(), 9))
    # Without its labels it has left the watch, which tells that as a deletion.
    store.pod_deleted(KEY, uid=POD_UID)
    store.pods.observe(version(pod(), 12))

    assert known(store) == "12"


def test_the_deletion_of_an_old_object_leaves_the_new_one_of_its_name() -> None:
    store = Store()
    store.pods.observe(version(pod(), 9))
    store.pods.observe(version(pod(uid="new"), 12))
    store.pod_deleted(KEY, uid=POD_UID)

    assert known(store) == "12"


def test_tombstones_do_not_grow_for_ever() -> None:
    cache = Cache(slim=slim_pod)
    for number in range(TOMBSTONES + 10):
        cache.remove(KEY, uid=str(number))

    assert len(cache._deleted) == TOMBSTONES  # pyright: ignore[reportPrivateUsage] - memory is not to be seen


def test_an_answer_goes_with_its_pod() -> None:
    store = Store()
    store.pods.observe(pod())
    assert store.put_answer(KEY, bound())
    store.pod_deleted(KEY, uid=POD_UID)

    assert store.answers(POD_UID) == {}


def test_an_answer_of_a_pod_that_is_gone_is_not_kept() -> None:
    store = Store()
    answer = Answer(pod_uid="gone", errand=Errand.BIND, outcome=Outcome.DONE, at=NOW)
    assert not store.put_answer(KEY, answer)
    store.pods.observe(pod())
    assert not store.put_answer(KEY, answer)


def test_a_sandbox_that_left_its_pod_behind_is_remembered_until_the_pod_is_gone() -> None:
    store = Store()
    store.sandboxes.observe(sandbox())
    store.pods.observe(pod())
    store.sandbox_deleted(KEY, uid=UID)
    assert store.departed(KEY) == UID
    store.pod_deleted(KEY, uid=POD_UID)
    assert store.departed(KEY) is None


def test_a_sandbox_whose_pod_is_somebody_else_s_leaves_nothing_behind() -> None:
    store = Store()
    store.sandboxes.observe(sandbox())
    store.pods.observe(pod(ownerReferences=[]))
    store.sandbox_deleted(KEY, uid=UID)

    assert store.departed(KEY) is None


def test_what_nobody_reads_is_not_kept() -> None:
    obj = sandbox(
        managedFields=[{}],
        annotations={
            "kubectl.kubernetes.io/last-applied-configuration": "long",
            "sandpod.dev/wake-requested-at": "now",
        },
    )
    assert slim_object(obj)["metadata"]["annotations"] == {"sandpod.dev/wake-requested-at": "now"}
    assert "managedFields" not in slim_object(obj)["metadata"]
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "x"}}
    spec: Json = {"nodeName": "n", "containers": [{}], "volumes": [claim, {"name": "tmp", "emptyDir": {}}]}
    assert slim_pod({**pod(), "spec": spec})["spec"] == {"nodeName": "n", "volumes": [claim]}


def test_keys_are_listed_while_they_change() -> None:
    cache = Cache(slim=slim_pod)
    cache.observe(pod())
    for key in cache:
        cache.remove(key, uid=POD_UID)

    assert list(cache) == []
    assert str(Key("a", "b")) == "a/b"


OWNER = {"apiVersion": "sandpod.dev/v1alpha1", "kind": "Sandbox", "name": "box", "controller": True}


def owned(store: Store, uid: str, *, namespace: str = KEY.namespace) -> list[Json]:
    return store.pods.owned_by(namespace=namespace, uid=uid)


def test_an_owner_has_no_children_in_other_namespaces() -> None:
    store = Store()
    store.sandboxes.observe(sandbox())
    store.pods.observe(pod(namespace="attacker"))

    assert owned(store, UID) == []
    assert len(owned(store, UID, namespace="attacker")) == 1
    assert not store.put_answer(KEY, bound())
    store.sandbox_deleted(KEY, uid=UID)
    assert store.departed(KEY) is None


def test_the_owner_is_one_of_our_objects() -> None:
    store = Store()
    store.pods.observe(pod(ownerReferences=[{**OWNER, "apiVersion": "apps/v1", "uid": UID}]))

    assert owned(store, UID) == []


def test_children_are_found_by_their_owner_whatever_their_names() -> None:
    store = Store()
    store.pods.observe(pod(name="warm-abc"))
    store.pods.observe(pod(uid="another", ownerReferences=[{**OWNER, "uid": "another owner"}]))

    assert [each["metadata"]["name"] for each in owned(store, UID)] == ["warm-abc"]
    assert owned(store, "nobody") == []


def test_a_child_that_changes_hands_is_found_with_its_new_owner_only() -> None:
    store = Store()
    store.pods.observe(version(pod(), 9))
    store.pods.observe(version(pod(ownerReferences=[{**OWNER, "uid": "another owner"}]), 12))

    assert owned(store, UID) == []
    assert len(owned(store, "another owner")) == 1
    store.pod_deleted(KEY, uid=POD_UID)
    assert owned(store, "another owner") == []


def test_an_answer_does_not_count_when_the_question_is_asked_anew() -> None:
    store = Store()
    store.sandboxes.observe(sandbox())
    store.pods.observe(pod())
    store.put_answer(KEY, bound())
    store.asking(KEY, pod_uid=POD_UID, errand=Errand.ADJUST)
    assert Errand.BIND in store.answers(POD_UID)
    store.asking(KEY, pod_uid=POD_UID, errand=Errand.BIND)

    assert store.answers(POD_UID) == {}


def test_for_how_long_a_pod_is_asked_is_remembered_as_long_as_it_is_there() -> None:
    clock = FakeClock()
    store = Store(clock=clock.time)
    store.sandboxes.observe(sandbox())
    store.pods.observe(pod())
    assert store.asked_for(POD_UID) is None
    store.asking(KEY, pod_uid=POD_UID, errand=Errand.BIND)
    clock.advance(5)
    store.asking(KEY, pod_uid=POD_UID, errand=Errand.BIND)
    assert store.asked_for(POD_UID) == timedelta(seconds=5)

    store.pod_deleted(KEY, uid=POD_UID)
    store.asking(KEY, pod_uid=POD_UID, errand=Errand.BIND)
    assert store.asked_for(POD_UID) is None


def test_a_refusal_of_what_a_sandbox_wanted_that_is_gone_is_not_kept() -> None:
    store = Store()
    refused = Refusal(sandbox_uid=UID, generation=1, reason=Reason.FORBIDDEN, message="no", retry_at=NOW)
    store.sandboxes.observe(sandbox())
    store.put_refusal(KEY, refused)
    assert store.refusal(KEY) == refused

    store.sandbox_deleted(KEY, uid=UID)
    store.put_refusal(KEY, refused)
    assert store.refusal(KEY) is None

    store.sandboxes.observe(sandbox(uid="the next of its name", resourceVersion="11"))
    store.put_refusal(KEY, refused)
    assert store.refusal(KEY) is None


def test_what_is_in_a_namespace_is_found_without_a_look_at_all_others() -> None:
    store = Store()
    for number, (name, namespace) in enumerate([("b", "team"), ("a", "team"), ("a", "other")]):
        store.pods.observe(pod(name=name, namespace=namespace, uid=f"uid-{number}"))
    assert [each["metadata"]["name"] for each in store.pods.inside("team")] == ["a", "b"]

    store.pod_deleted(Key("team", "a"), uid="uid-1")
    assert [each["metadata"]["name"] for each in store.pods.inside("team")] == ["b"]
    assert store.pods.inside("nobody's") == []


def test_a_pool_knows_the_sandboxes_that_have_their_pod_from_it_for_as_long_as_they_have() -> None:
    def those() -> list[str]:
        return [uid_of(each) for each in store.sandboxes.of_pool(namespace=KEY.namespace, pool="python")]

    store = Store()
    store.sandboxes.observe(sandbox())
    assert those() == []
    store.sandboxes.observe(sandbox(status={"pool": "python"}, resourceVersion="11"))
    assert those() == [UID]
    store.sandboxes.observe(sandbox(resourceVersion="12"))
    assert those() == []


def test_a_namespace_that_others_have_labelled_and_own_may_change() -> None:
    store = Store()
    tenant = {"apiVersion": "example.com/v1", "kind": "Tenant", "name": "t", "uid": "t", "controller": True}
    labels = {LABEL_INSTANCE: "team", LABEL_POOL_UID: "p"}
    metadata = {"name": "team", "uid": "u", "labels": labels, "ownerReferences": [tenant]}

    store.namespaces.observe({"metadata": {**metadata, "resourceVersion": "1"}})
    store.namespaces.observe({"metadata": {**metadata, "labels": {"a": "b"}, "resourceVersion": "2"}})

    found = store.namespaces.get(Key("", "team"))
    assert found is not None
    assert found["metadata"]["labels"] == {"a": "b"}
