"""The merge of a podTemplate into the sandbox's pod, and what of it must not get through."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_crds.models import Sandbox
from sandpod_operator.errors import BadPodTemplate
from sandpod_operator.objects import Json
from sandpod_operator.resources.merge import MERGE_KEYS
from sandpod_operator.resources.pod import overridden_fields

from tests.support.operator_objects import case_of, sandbox

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "a", "sandbox", "delete", "replace"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "env",
                    "ports",
                    "containers",
                    "initContainers",
                    "volumes",
                    "volumeMounts",
                    "mountPath",
                    "containerPort",
                    "securityContext",
                    "$patch",
                    "value",
                    "image",
                    "capabilities",
                    "imagePullSecrets",
                    "hostPath",
                    "hostPort",
                    "projected",
                    "sources",
                    "serviceAccountToken",
                    "privileged",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"containers": "x"}, "podTemplate.spec.containers must be a list"),
        ({"volumes": {"name": "x"}}, "podTemplate.spec.volumes must be a list"),
        (
            {"containers": [{"image": "x"}]},
            "every item of podTemplate.spec.containers must be an object with",
        ),
        ({"containers": ["x"]}, "every item of podTemplate.spec.containers must be an object with a name"),
        ({"volumes": [{"name": "x"}, {"name": "x"}]}, "podTemplate.spec.volumes has x twice"),
        (
            {"containers": [{"name": "sandbox", "env": [{"value": "x"}]}]},
            "every item of podTemplate.spec.containers.env must be an object with a name",
        ),
        ({"securityContext": "none"}, "podTemplate.spec.securityContext must be an object"),
        (
            {"initContainers": [{"name": "x", "securityContext": "none"}]},
            "podTemplate.spec.initContainers.securityContext must be an object",
        ),
        (
            {"containers": [{"name": "sandbox", "$patch": "replace", "ports": "none"}]},
            "podTemplate.spec.containers.ports must be a list",
        ),
    ],
)
def test_a_template_that_cannot_be_merged_says_where(spec: Json, sentence: str) -> None:
    with pytest.raises(BadPodTemplate) as error:
        build(spec)

    assert sentence in str(error.value)


@given(
    st.dictionaries(st.sampled_from(sorted({path[0] for path in MERGE_KEYS} | {"securityContext"})), JSON),
    st.sampled_from(["sandpod/sandbox:0.1.0", "busybox:1"]),
)
@settings(max_examples=400)
def test_any_template_makes_a_confined_pod_or_a_sentence(spec: Json, image: str) -> None:
    try:
        made = build(spec, image=image)
    except BadPodTemplate:
        return
    assert_confined(made, image=image)


@pytest.mark.parametrize(
    "spec",
    [
        {"hostNetwork": True, "hostPID": True, "hostIPC": True, "shareProcessNamespace": True},
        {"restartPolicy": "Always", "automountServiceAccountToken": True},
        {
            "securityContext": {
                "runAsUser": 0,
                "runAsNonRoot": False,
                "seccompProfile": {"type": "Unconfined"},
            }
        },
        {"containers": [{"name": "sandbox", "image": "evil", "command": ["sh"], "args": ["-c", "id"]}]},
        {"containers": [{"name": "sandbox", "securityContext": {"privileged": True, "runAsUser": 0}}]},
        {"containers": [{"name": "sandbox", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]},
        {"containers": [{"name": "sandbox", "env": [{"name": "SANDPOD_BIND_SHA256", "value": "0"}]}]},
        {
            "containers": [
                {"name": "sandbox", "ports": [{"containerPort": 3000, "name": "x", "hostPort": 3000}]}
            ]
        },
    ],
)
def test_what_keeps_a_sandbox_contained_wins_and_is_said(spec: Json) -> None:
    made = build(spec)

    assert_confined(made)
    template = Sandbox.model_validate(sandbox({"podTemplate": {"spec": spec}})).spec.pod_template
    assert overridden_fields(template, made)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"nodeName": "node-1"}, "podTemplate.spec.nodeName passes over the scheduler"),
        (
            {"volumes": [{"name": "node", "hostPath": {"path": "/"}}]},
            "podTemplate.spec.volumes[node] is a hostPath: remove it",
        ),
        (
            {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "podTemplate.spec.volumes[t] projects a serviceAccountToken: remove it",
        ),
        (
            {"containers": [{"name": "sandbox", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
            "podTemplate.spec.containers[sandbox].ports[80] has a hostPort: remove it",
        ),
        (
            {"containers": [{"name": "side", "ports": [{"containerPort": 3000, "hostPort": 3000}]}]},
            "podTemplate.spec.containers[side].ports[3000] has a hostPort: remove it",
        ),
        (
            {"initContainers": [{"name": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}]},
            "podTemplate.spec.initContainers[i].ports[1] has a hostPort: remove it",
        ),
    ],
)
def test_a_way_out_of_the_pod_is_refused_and_said_how_to_mend(spec: Json, sentence: str) -> None:
    with pytest.raises(BadPodTemplate) as error:
        build(spec)

    assert sentence in str(error.value)


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize(
    "security",
    [
        {"privileged": True},
        {"runAsUser": 0, "runAsNonRoot": False},
        {"capabilities": {"add": ["SYS_ADMIN"]}},
        {"allowPrivilegeEscalation": True},
        {"seccompProfile": {"type": "Unconfined"}},
        {"procMount": "Unmasked"},
    ],
)
def test_what_stands_beside_the_sandbox_is_confined_as_it_is(kind: str, security: Json) -> None:
    spec = {kind: [{"name": "side", "image": "x", "securityContext": security}]}
    made = build(spec)

    assert_confined(made)
    template = Sandbox.model_validate(sandbox({"podTemplate": {"spec": spec}})).spec.pod_template
    assert overridden_fields(template, made)


def test_root_of_a_user_namespace_is_the_sandbox_s_alone() -> None:
    spec: Json = {
        "containers": [{"name": "side", "image": "x", "securityContext": {"privileged": True}}],
        "initContainers": [{"name": "before", "image": "x"}],
    }
    strict = sandbox({"isolation": "Strict", "user": "root", "podTemplate": {"spec": spec}})
    made: Any = case_of(strict).wanted_pod["spec"]

    for each in (made["containers"][1], made["initContainers"][0]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


def test_what_the_template_may_set_is_in_the_pod_and_not_said_to_be_overridden() -> None:
    spec: Json = {
        "priorityClassName": "high",
        "terminationGracePeriodSeconds": 5,
        "containers": [
            {"name": "sandbox", "env": [{"name": "A", "value": "1"}], "resources": {"limits": {"gpu/x": 1}}},
            {"name": "sidecar", "image": "side:1"},
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "securityContext": {"supplementalGroups": [7]},
    }
    made = build(spec)
    template = Sandbox.model_validate(sandbox({"podTemplate": {"spec": spec}})).spec.pod_template

    assert overridden_fields(template, made) == []
    assert [each["name"] for each in made["spec"]["containers"]] == ["sandbox", "sidecar"]


@pytest.mark.parametrize(("theirs", "ours"), [(5, 5), (60, 60), (31_536_000, 60)])
def test_a_pod_has_a_minute_at_most_to_end(theirs: int, ours: int) -> None:
    assert build({"terminationGracePeriodSeconds": theirs})["spec"]["terminationGracePeriodSeconds"] == ours


def build(spec: Json, *, image: str = "sandpod/sandbox:0.1.0") -> Json:
    return case_of(sandbox({"image": image, "podTemplate": {"spec": spec}})).wanted_pod


def assert_confined(made: Json, *, image: str = "sandpod/sandbox:0.1.0") -> None:
    spec: Any = made["spec"]
    container = next(each for each in spec["containers"] if each["name"] == "sandbox")
    assert not [
        field for field in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace") if field in spec
    ]
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 1000
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["image"] == image
    assert container["command"] == ["/opt/sandpod/bin/sandpod-runtime"]
    assert "args" not in container
    for each in [*spec["containers"], *spec.get("initContainers", [])]:
        security = each["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "runAsUser", "runAsNonRoot", "seccompProfile", "procMount"} & set(security)
        ports: list[Json] = each.get("ports") or []
        assert not [port for port in ports if port.get("hostPort")]
    volumes: list[Json] = spec.get("volumes") or []
    assert not [volume for volume in volumes if volume.get("hostPath") is not None]
    assert [e["value"] for e in container["env"] if e["name"] == "SANDPOD_BIND_SHA256"] != ["0"]
    assert {"name": "control", "containerPort": 3000} in container["ports"]
