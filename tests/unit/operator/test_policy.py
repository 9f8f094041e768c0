"""What a SandboxPolicy allows, and what it says to whom it does not."""

import pytest
from sandpod_crds.models import SandboxSpec
from sandpod_operator.objects import Json
from sandpod_operator.policy import Denial, Standing, idle_limit

from tests.support.policy_objects import LIMITS, container, judged, pod, policy


@pytest.mark.parametrize(
    ("rules", "spec", "made"),
    [
        pytest.param({}, {"keepAlive": True}, pod(), id="no limits"),
        pytest.param({"maxResources": LIMITS}, {}, pod(), id="exactly the most"),
        pytest.param({"maxResources": {"cpu": "2000m"}}, {}, pod(), id="written differently"),
        pytest.param({"maxResources": {"nvidia.com/gpu": 0}}, {}, pod(), id="no device is no device"),
        pytest.param({"allowedImages": ["example.com/*"]}, {}, pod(), id="our own image"),
        pytest.param(
            {"allowedImages": ["example.com/*"]},
            {},
            pod(container(image="example.com/team/tools:1")),
            id="an image that fits",
        ),
        pytest.param({"maxSleepAfter": "5m"}, {}, pod(), id="the default is held to it and not refused"),
        pytest.param({"maxSleepAfter": "5m"}, {"sleepAfter": 300}, pod(), id="exactly the longest"),
        pytest.param(
            {"maxSleepAfter": "5m", "allowKeepAlive": True},
            {"keepAlive": True},
            pod(),
            id="keepAlive allowed",
        ),
        pytest.param({"requireIsolation": "Strict"}, {"isolation": "Strict"}, pod(), id="strict"),
        pytest.param(
            {"allowedRuntimeClasses": ["gvisor"]}, {}, pod(runtimeClassName="gvisor"), id="a class that fits"
        ),
        pytest.param({"allowedPriorityClasses": []}, {}, pod(), id="the cluster's own default"),
        pytest.param(
            {"allowedPriorityClasses": ["batch"]},
            {},
            pod(priorityClassName="batch"),
            id="a priority class that fits",
        ),
        pytest.param(
            {"allowedPriorityClasses": []},
            {},
            pod(priorityClassName="sandboxes"),
            id="the chart's priority class",
        ),
        pytest.param({"allowedEgress": ["Internet"]}, {}, pod(), id="Internet is the default"),
        pytest.param(
            {"allowedDestinations": ["10.0.0.0/8", "2001:db8::/32"]},
            {
                "network": {
                    "egress": "Restricted",
                    "allow": [{"cidr": "10.1.0.0/16"}, {"cidr": "2001:db8:1::/48"}],
                }
            },
            pod(),
            id="ranges that lie inside",
        ),
        pytest.param({"maxWorkspaceSize": "10Gi"}, {"workspace": {"claimName": "c"}}, pod(), id="a claim"),
    ],
)
def test_what_keeps_to_the_policy_may_start(rules: Json, spec: Json, made: Json) -> None:
    assert judged(policy(**rules), spec=spec, made=made) is None


@pytest.mark.parametrize(
    ("rules", "spec", "made", "field", "sentence"),
    [
        pytest.param(
            {"maxResources": {"memory": "1Gi"}},
            {},
            pod(),
            "resources",
            "memory may be 1Gi at most (maxResources), and the limit is 2Gi; lower resources.limits.memory.",
            id="memory",
        ),
        pytest.param(
            {"maxResources": {"cpu": 3}},
            {},
            pod(container(), container("sidecar", cpu="1500m")),
            "resources",
            "cpu may be 3 at most (maxResources), and the limits of the pod's containers add up to 3.5; "
            "lower resources.limits.cpu.",
            id="a sidecar counts",
        ),
        pytest.param(
            {"maxResources": {"cpu": 3}},
            {},
            pod(initContainers=[container("early", cpu=4)]),
            "resources",
            "cpu may be 3 at most (maxResources), and the limit is 4; lower resources.limits.cpu.",
            id="an init container counts",
        ),
        pytest.param(
            {"maxResources": {"cpu": 3}},
            {},
            pod({"name": "sandbox", "image": "sandpod/sandbox:1"}),
            "resources",
            "cpu may be 3 at most (maxResources), and the container sandbox has no limit of it; set "
            "resources.limits.cpu.",
            id="no limit",
        ),
        pytest.param(
            {"maxResources": {"nvidia.com/gpu": 0}},
            {},
            pod(container(limits={"nvidia.com/gpu": 1})),
            "resources",
            "nvidia.com/gpu may be 0 at most (maxResources), and the limit is 1; lower "
            "resources.limits.nvidia.com/gpu.",
            id="a device",
        ),
        pytest.param(
            {"maxResources": {"cpu": 3}},
            {},
            pod(container(cpu="NaN")),
            "resources",
            "cpu may be 3 at most (maxResources), and a container's limit is not to be understood; correct "
            "podTemplate.",
            id="nonsense",
        ),
        pytest.param(
            {"allowedImages": ["example.com/*", "alpine:3.*"]},
            {},
            pod(container(), container("sidecar", image="alpine:latest")),
            "image",
            "the image alpine:latest is none of those that are allowed (allowedImages); choose one that is "
            "like example.com/*, alpine:3.*.",
            id="a sidecar's image",
        ),
        pytest.param(
            {"allowedImages": ["example.com/*"]},
            {},
            pod(volumes=[{"name": "v", "image": {"reference": "other.example/x"}}]),
            "image",
            "the image other.example/x is none of those that are allowed (allowedImages); choose one that is "
            "like example.com/*.",
            id="an image as a volume",
        ),
        pytest.param(
            {"maxSleepAfter": "1h"},
            {"sleepAfter": "2h"},
            pod(),
            "sleepAfter",
            "sleepAfter is 2h and may be 1h at most (maxSleepAfter); lower it.",
            id="sleepAfter",
        ),
        pytest.param(
            {"maxSleepAfter": "1h"},
            {"keepAlive": True},
            pod(),
            "keepAlive",
            "keepAlive is not allowed (allowKeepAlive); remove it.",
            id="keepAlive would be no sleepAfter at all",
        ),
        pytest.param(
            {"maxWorkspaceSize": "10Gi"},
            {"workspace": {"size": "20Gi"}},
            pod(),
            "workspace",
            "workspace.size is 20Gi and may be 10Gi at most (maxWorkspaceSize); lower it.",
            id="workspace",
        ),
        pytest.param(
            {"requireIsolation": "Strict"},
            {},
            pod(),
            "isolation",
            "isolation is Standard and has to be Strict (requireIsolation); set it.",
            id="isolation",
        ),
        pytest.param(
            {"allowedPriorityClasses": ["batch", "interactive"]},
            {},
            pod(priorityClassName="system-node-critical"),
            "priorityClassName",
            "priorityClassName is system-node-critical, which is not allowed (allowedPriorityClasses); "
            "choose one of batch, interactive, or remove it.",
            id="a priority class",
        ),
        pytest.param(
            {"allowedPriorityClasses": []},
            {},
            pod(priorityClassName="batch"),
            "priorityClassName",
            "priorityClassName is batch, which is not allowed (allowedPriorityClasses); remove it.",
            id="no priority class at all",
        ),
        pytest.param(
            {"allowedRuntimeClasses": ["gvisor", "kata"]},
            {},
            pod(),
            "runtimeClassName",
            "runtimeClassName is not set and has to be one of gvisor, kata (allowedRuntimeClasses); set it.",
            id="runtime class",
        ),
        pytest.param(
            {"allowedEgress": ["None", "Restricted"]},
            {},
            pod(),
            "network",
            "network.egress is Internet and has to be one of None, Restricted (allowedEgress); set it.",
            id="egress",
        ),
        pytest.param(
            {"allowedDestinations": ["10.0.0.0/8"]},
            {"network": {"egress": "Restricted", "allow": [{"cidr": "0.0.0.0/0"}, {"cidr": "10.0.0.0/9"}]}},
            pod(),
            "network",
            "network.allow has 0.0.0.0/0, which does not lie in 10.0.0.0/8 (allowedDestinations); remove it.",
            id="destinations",
        ),
    ],
)
def test_what_does_not_is_told_the_policy_the_limit_and_what_to_do(
    rules: Json, spec: Json, made: Json, field: str, sentence: str
) -> None:
    assert judged(policy(**rules), spec=spec, made=made) == Denial(
        message=f"SandboxPolicy students: {sentence}", fields=frozenset({field})
    )


def test_the_oldest_sandboxes_may_start() -> None:
    five = policy(maxSandboxes=5)

    assert judged(five, standing=Standing(older=4)) is None
    denial = judged(five, standing=Standing(older=7))
    assert denial is not None
    assert denial.fields == frozenset()
    assert denial.message == (
        "SandboxPolicy students: only the 5 oldest sandboxes of a namespace may start (maxSandboxes); it is "
        "the turn of the next when one that is older is deleted."
    )
    # Thousands may wait: what they are told is not to change with each that goes.
    assert judged(five, standing=Standing(older=6)) == denial


@pytest.mark.parametrize(
    ("most", "part"),
    [(1, "only the oldest sandbox of a namespace"), (0, "no sandbox may start in this namespace")],
)
def test_few_are_said_in_words_that_fit(most: int, part: str) -> None:
    denial = judged(policy(maxSandboxes=most), standing=Standing(older=1))

    assert denial is not None
    assert part in denial.message


def test_a_pool_is_held_to_everything_but_the_number() -> None:
    assert judged(policy(maxSandboxes=0)) is None
    assert judged(policy(maxSandboxes=0, maxResources={"cpu": 1})) is not None


@pytest.mark.parametrize(("size", "denied"), [("50Gi", False), ("51Gi", True)])
def test_a_volume_that_is_there_locks_nobody_out_but_may_not_grow(size: str, denied: bool) -> None:
    denial = judged(
        policy(maxWorkspaceSize="10Gi"),
        spec={"workspace": {"size": size}},
        standing=Standing(older=0, volume="50Gi"),
    )

    assert (denial is not None) is denied


def test_all_policies_hold_and_all_that_is_wrong_is_said_at_once_up_to_a_bound() -> None:
    denial = judged(
        policy("first", maxResources={"cpu": 1, "memory": "1Gi"}, requireIsolation="Strict"),
        policy("second", allowKeepAlive=False, maxSleepAfter="1h", allowedEgress=["None"]),
        spec={"keepAlive": True, "sleepAfter": "2h"},
    )

    assert denial is not None
    assert denial.message.startswith("SandboxPolicy first: cpu may be 1 at most")
    assert "SandboxPolicy second: keepAlive" in denial.message
    assert denial.message.endswith("And 1 more.")
    assert denial.fields == {"resources", "isolation", "keepAlive", "sleepAfter", "network"}


def test_what_others_wrote_is_cut_to_a_bearable_length() -> None:
    denial = judged(policy(allowedImages=["a"] * 64), made=pod(container(image="x" * 100_000)))

    assert denial is not None
    assert len(denial.message) < 500


@pytest.mark.parametrize(
    ("spec", "rules", "seconds"),
    [
        ({}, [], 600),
        ({"sleepAfter": "2h"}, [], 7200),
        ({"keepAlive": True}, [], None),
        ({}, [{"maxSleepAfter": "5m"}], 300),
        ({}, [{"maxSleepAfter": "1h"}], 600),
        ({"sleepAfter": "2h"}, [{"maxSleepAfter": "1h"}, {"maxSleepAfter": "30m"}], 1800),
        ({"keepAlive": True}, [{"maxSleepAfter": "5m"}], 300),
        ({"keepAlive": True}, [{"maxSleepAfter": "5m", "allowKeepAlive": True}], None),
        ({"keepAlive": True}, [{"allowKeepAlive": True}, {"allowKeepAlive": False}], 600),
    ],
)
def test_a_sandbox_stays_awake_as_long_as_it_wants_and_may(
    spec: Json, rules: list[Json], seconds: float | None
) -> None:
    policies = [policy(**each) for each in rules]

    assert idle_limit(SandboxSpec.model_validate(spec), policies=policies) == seconds
