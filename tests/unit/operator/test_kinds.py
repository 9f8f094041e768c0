"""Which sandboxes an event is about."""

from collections.abc import Iterator

import pytest
from sandpod_crds.names import LABEL_POOL_UID
from sandpod_operator.kinds import (
    CLAIM,
    KINDS,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    POOL,
    SANDBOX,
    TEMPLATE,
    Kind,
)
from sandpod_operator.objects import Json
from sandpod_operator.observations import Key
from sandpod_operator.store import Cache, Store

from tests.support.operator_objects import KEY, claim, pod, sandbox

OWNER = {
    "apiVersion": "sandpod.dev/v1alpha1",
    "kind": "Sandbox",
    "name": "box",
    "uid": "u",
    "controller": True,
}


def concerned(kind: Kind, obj: Json, *sandboxes: Json, cache: Cache | None = None) -> set[Key]:
    cache = Store().sandboxes if cache is None else cache
    for number, each in enumerate(sandboxes):
        cache.observe({**each, "metadata": {**each["metadata"], "resourceVersion": str(number + 1)}})
    return set(kind.concerns(obj, cache))


class Unwalkable(Cache):
    def __iter__(self) -> Iterator[Key]:
        raise AssertionError("all sandboxes of the cluster were walked")


def test_a_sandbox_is_about_itself() -> None:
    assert concerned(SANDBOX, sandbox()) == {KEY}


def test_a_pod_is_about_its_owner_and_about_whoever_has_its_name() -> None:
    assert concerned(POD, pod()) == {KEY}
    assert concerned(POD, pod(name="warm-abc")) == {KEY, Key("team", "warm-abc")}


def test_a_pod_of_somebody_else_is_about_whoever_has_its_name() -> None:
    theirs = [{**OWNER, "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}]
    assert concerned(POD, pod(ownerReferences=theirs)) == {KEY}
    assert concerned(POD, pod(ownerReferences=[])) == {KEY}
    # Another group's kind of our name
    foreign = [{**OWNER, "apiVersion": "example.com/v1", "name": "other"}]
    assert concerned(POD, pod(ownerReferences=foreign)) == {KEY}


def test_a_claim_is_about_the_sandbox_that_its_label_or_its_name_says() -> None:
    assert concerned(CLAIM, claim()) == {KEY}
    # It outlives its sandbox: there is no owner to go by.
    assert concerned(CLAIM, claim(owner=None)) == {KEY}
    # And the one that would have a claim of this name waits until it is free.
    assert concerned(CLAIM, claim(labels={})) == {KEY}


def test_a_network_policy_is_about_the_sandbox_that_its_label_names() -> None:
    assert concerned(NETWORK_POLICY, claim(name="box-sandbox")) == {KEY}


def test_the_network_policy_of_a_pool_is_about_the_sandboxes_that_may_be_behind_it() -> None:
    claimed = sandbox(status={"pool": "python"}, name="claimed")
    elsewhere = sandbox(status={"pool": "python"}, name="claimed", namespace="other")
    wall = {"metadata": {"name": "python-pool", "namespace": "team", "labels": {LABEL_POOL_UID: "u"}}}

    found = concerned(NETWORK_POLICY, wall, claimed, elsewhere, sandbox(name="cold"))
    assert found == {Key("team", "claimed")}


def test_a_template_is_about_sandboxes_of_its_namespace_that_have_one() -> None:
    ours = sandbox({"templateRef": {"name": "python"}}, name="ours")
    pooled = sandbox({"poolRef": {"name": "python"}}, name="pooled")
    plain = sandbox(name="plain")
    elsewhere = sandbox({"templateRef": {"name": "python"}}, namespace="other")
    template = {"metadata": {"name": "python", "namespace": "team"}}

    for kind in (TEMPLATE, POOL):
        found = concerned(kind, template, ours, pooled, plain, elsewhere)
        assert found == {Key("team", "ours"), Key("team", "pooled")}


def test_a_namespace_is_about_the_sandboxes_in_it() -> None:
    elsewhere = sandbox(namespace="other")

    assert concerned(NAMESPACE, {"metadata": {"name": "team"}}, sandbox(), elsewhere) == {KEY}


@pytest.mark.parametrize("kind", [NETWORK_POLICY, TEMPLATE, POOL, NAMESPACE])
def test_what_is_about_one_namespace_does_not_walk_the_others(kind: Kind) -> None:
    cache = Unwalkable(slim=SANDBOX.slim)
    ours = sandbox({"poolRef": {"name": "python"}}, status={"pool": "python"})
    name, place = ("team", {}) if kind is NAMESPACE else ("python", {"namespace": "team"})

    obj = {"metadata": {"name": name, **place, "labels": {LABEL_POOL_UID: "u"}}}
    assert concerned(kind, obj, ours, sandbox(namespace="other"), cache=cache) == {KEY}


def test_every_kind_has_a_place_of_its_own() -> None:
    assert len({kind.plural for kind in KINDS}) == len(KINDS)
    assert POD.path("team", "box") == "/api/v1/namespaces/team/pods/box"
    assert SANDBOX.path() == "/apis/sandpod.dev/v1alpha1/sandboxes"
    assert NETWORK_POLICY.path("team") == "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies"


def test_of_what_is_ours_only_that_is_sent() -> None:
    assert all(kind.selector for kind in (POD, CLAIM, NETWORK_POLICY))
