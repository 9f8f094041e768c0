"""The merge of a podTemplate into the sandbox's pod, and what of it must not get through."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_crds.models import Sandbox
from sandpod_operator.errors import BadPodTemplate
from sandpod_operator.objects import Json
from sandpod_operator.resources.merge import MERGE_KEYS, merge, overridden
from sandpod_operator.resources.pod import build_pod, overridden_fields

from tests.support.operator_objects import INSTALLATION, sandbox

NAMES = st.sampled_from(["a", "b", "sandbox"])
SCALARS = st.sampled_from(["x", "y", 1, 2, True])
CONTAINERS: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "image": SCALARS,
        "env": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"value": SCALARS}),
            unique_by=lambda item: item["name"],
        ),
        "args": st.lists(SCALARS),
        "resources": st.dictionaries(NAMES, st.dictionaries(NAMES, SCALARS)),
        "ports": st.lists(
            st.fixed_dictionaries({"containerPort": st.integers(1, 3)}),
            unique_by=lambda item: item["containerPort"],
        ),
    },
)
SPECS: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {},
    optional={
        "containers": st.lists(CONTAINERS, unique_by=lambda item: item["name"]),
        "volumes": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"emptyDir": st.just({})}),
            unique_by=lambda item: item["name"],
        ),
        "nodeSelector": st.dictionaries(NAMES, SCALARS),
        "tolerations": st.lists(st.dictionaries(NAMES, SCALARS)),
        "hostname": SCALARS,
    },
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "sandbox", "delete"]),
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
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(SPECS)
def test_merging_nothing_changes_nothing(base: Json) -> None:
    assert merge(base, {}) == base


@given(SPECS)
def test_merging_a_spec_into_itself_changes_nothing(base: Json) -> None:
    assert merge(base, base) == base


@given(SPECS, SPECS)
def test_merging_twice_is_merging_once(base: Json, patch: Json) -> None:
    once = merge(base, patch)

    assert merge(once, patch) == once


@given(SPECS, SPECS)
def test_everything_that_the_patch_says_is_in_the_result(base: Json, patch: Json) -> None:
    assert list(overridden(patch, merge(base, patch))) == []


@given(SPECS, SPECS)
def test_lists_of_named_things_have_every_name_once(base: Json, patch: Json) -> None:
    merged = merge(base, patch)
    names = [each["name"] for each in merged.get("containers", [])]

    assert len(names) == len(set(names))
    wanted = {each["name"] for spec in (base, patch) for each in spec.get("containers", [])}
    assert set(names) == wanted


@given(SPECS, SPECS)
def test_neither_side_is_changed(base: Json, patch: Json) -> None:
    before = copy.deepcopy((base, patch))
    merge(base, patch)

    assert (base, patch) == before


def test_named_things_are_merged_and_other_lists_replaced() -> None:
    base: Json = {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["old"]}]}
    patch: Json = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["new"]}]}

    assert merge(base, patch)["containers"] == [
        {"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "args": ["new"]}
    ]


def test_a_null_and_a_delete_take_away_and_a_replace_replaces() -> None:
    base: Json = {
        "hostname": "h",
        "volumes": [{"name": "a"}, {"name": "b"}],
        "affinity": {"nodeAffinity": {}, "podAffinity": {}},
    }
    patch: Json = {
        "hostname": None,
        "volumes": [{"name": "a", "$patch": "delete"}],
        "affinity": {"$patch": "replace", "podAntiAffinity": {}},
    }

    assert merge(base, patch) == {"volumes": [{"name": "b"}], "affinity": {"podAntiAffinity": {}}}


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


def build(spec: Json, *, image: str = "sandpod/sandbox:0.1.0") -> Json:
    wanted = Sandbox.model_validate(sandbox({"image": image, "podTemplate": {"spec": spec}}))
    return build_pod(wanted, installation=INSTALLATION)


def assert_confined(made: Json, *, image: str = "sandpod/sandbox:0.1.0") -> None:
    spec: Any = made["spec"]
    container = next(each for each in spec["containers"] if each["name"] == "sandbox")
    security = container["securityContext"]
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
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert not {"privileged", "runAsUser", "runAsNonRoot", "procMount"} & set(security)
    assert [e["value"] for e in container["env"] if e["name"] == "SANDPOD_BIND_SHA256"] != ["0"]
    assert {"name": "control", "containerPort": 3000} in container["ports"]
