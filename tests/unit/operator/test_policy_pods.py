"""What a SandboxPolicy says to what a podTemplate brings: its containers and volumes."""

from typing import Any

import pytest
from sandpod_operator.objects import Json
from sandpod_operator.resources.runtime_mount import copier

from tests.support.policy_objects import INSTALLATION, LIMITS, container, judged, pod, policy


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ("10Gi", None),
        ("11Gi", "podTemplate.spec.volumes[big] is 11Gi and may be 10Gi at most (maxWorkspaceSize)"),
        (None, "not to be understood"),
        (["1Gi"], "not to be understood"),
        ("large", "not to be understood"),
    ],
)
def test_a_volume_that_a_pod_template_makes_is_held_to_the_size_as_well(size: Any, says: str | None) -> None:
    claim = {"spec": {"resources": {"requests": {"storage": size}}}}
    made = pod(volumes=[{"name": "big", "ephemeral": {"volumeClaimTemplate": claim}}, {"name": "other"}])

    denial = judged(policy(maxWorkspaceSize="10Gi"), made=made)

    assert (says in denial.message) if says and denial else denial is says
    assert judged(policy(), made=made) is None


@pytest.mark.parametrize("broken", ["text", 3, {"volumeClaimTemplate": ["a"]}])
def test_one_that_makes_no_sense_is_denied_and_no_error(broken: Any) -> None:
    made = pod(volumes=[{"name": "v", "ephemeral": broken}])

    assert judged(policy(maxWorkspaceSize="10Gi"), made=made) is not None


def test_the_container_that_brings_the_runtime_does_not_count() -> None:
    rules = policy(maxResources=LIMITS, allowedImages=["example.com/*"])

    assert judged(rules, made=pod(initContainers=[copier(INSTALLATION.settings)])) is None


@pytest.mark.parametrize(
    "change",
    [
        {"name": "mine"},
        {"command": ["sh"]},
        {"restartPolicy": "Always"},
        {"resources": {"limits": {"memory": "1Ti"}}},
    ],
)
def test_one_that_only_looks_like_it_counts_as_any_other(change: Json) -> None:
    made = pod(initContainers=[{**copier(INSTALLATION.settings), **change}])

    too_much = judged(policy(maxResources=LIMITS), made=made)
    unknown = judged(policy(allowedImages=["example.com/*"]), made=made)

    assert too_much is not None
    assert "has no limit" in too_much.message
    assert unknown is not None
    assert "sandpod/runtime:1" in unknown.message


def test_init_containers_that_stay_count_beside_the_others_and_those_that_end_do_not() -> None:
    early, staying = container("early", cpu=2), {**container("staying", cpu=1), "restartPolicy": "Always"}
    made = pod(initContainers=[staying, early])

    assert judged(policy(maxResources={"cpu": 3}), made=made) is None
    denial = judged(policy(maxResources={"cpu": "2900m"}), made=made)
    assert denial is not None
    assert "the limit is 3" in denial.message


@pytest.mark.parametrize("broken", ["text", 3, ["a"], {"limits": "text"}, {"limits": {"cpu": ["a"]}}])
def test_a_pod_template_that_makes_no_sense_is_denied_and_no_error(broken: Any) -> None:
    made = pod({"name": "sandbox", "resources": broken}, volumes=[{"name": "v", "image": broken}])

    assert judged(policy(maxResources={"cpu": 3}), made=made) is not None
