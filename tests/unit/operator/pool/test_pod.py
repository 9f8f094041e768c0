"""The pod that waits in a pool: a sandbox's of the template, but for what comes with the bind."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds.models import Sandbox, SandboxSpec
from sandpod_operator.case import Case
from sandpod_operator.effective import Source
from sandpod_operator.objects import Json
from sandpod_operator.pool.names import LONGEST, fresh_name
from sandpod_operator.pool.pod import shape_of
from sandpod_operator.pool.wall import network_id
from sandpod_operator.situation import Situation

from tests.support.operator_objects import INSTALLATION, KEY, NOW, installation, sandbox
from tests.support.pool_objects import POOL_UID, plan, waiting_pod


def shape(spec: Json) -> str | None:
    return shape_of(SandboxSpec.model_validate(spec), installation=INSTALLATION)


def cold(spec: Json) -> Json:
    """The pod that a sandbox of this spec gets without a pool."""
    model = Sandbox.model_validate(sandbox(spec))
    situation = Situation(key=KEY, sandbox=model, source=Source())
    return Case(situation, model, now=NOW, installation=INSTALLATION).wanted_pod


FULL: Json = {
    "image": "tools:1",
    "resources": {"limits": {"memory": "1Gi"}},
    "isolation": "Strict",
    "user": "root",
    "nodeSelector": {"disk": "fast"},
    "podTemplate": {"metadata": {"labels": {"team": "red"}}, "spec": {"priorityClassName": "low"}},
    "workspace": {"size": "1Gi"},
}


@pytest.mark.parametrize("spec", [{}, FULL], ids=["nothing", "everything"])
def test_it_is_the_pod_of_a_sandbox_but_for_names_and_the_probes(spec: Json) -> None:
    warm, other = waiting_pod(template=spec), cold(spec)

    for pod, name in ((warm, "python-aaaaa"), (other, KEY.name)):
        container = pod["spec"]["containers"][0]
        for probe in ("startupProbe", "readinessProbe"):
            container.pop(probe, None)
        container["env"] = [each for each in container["env"] if each["name"] != "SANDPOD_BIND_SHA256"]
        for volume in pod["spec"].get("volumes", []):
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] == f"{name}-workspace"
                volume["persistentVolumeClaim"]["claimName"] = "same"
    assert warm["spec"] == other["spec"]


def test_it_is_the_pools_and_nobodys_yet() -> None:
    metadata = waiting_pod()["metadata"]

    assert [(owner["kind"], owner["uid"]) for owner in metadata["ownerReferences"]] == [
        ("SandboxPool", POOL_UID)
    ]
    labels = metadata["labels"]
    assert labels["sandpod.dev/pool-uid"] == POOL_UID
    assert labels["sandpod.dev/network"] == network_id(POOL_UID, None)
    # No drain waits for it, and no selector of a sandbox finds it.
    assert not {"sandpod.dev/protected", "sandpod.dev/sandbox-uid", "app.kubernetes.io/instance"} & set(
        labels
    )
    assert metadata["annotations"]["sandpod.dev/pool"] == "python"


def test_the_kubelet_asks_it_every_second_until_it_answers_and_rarely_from_then_on() -> None:
    container = waiting_pod()["spec"]["containers"][0]

    periods = {}
    for kind in ("startupProbe", "readinessProbe"):
        assert container[kind]["httpGet"] == {"path": "/readyz", "port": 3000}
        periods[kind] = container[kind]["periodSeconds"]
    assert periods == {"startupProbe": 1, "readinessProbe": 10}


def test_nothing_that_comes_with_the_bind_is_in_it() -> None:
    template = {
        "env": [
            {"name": "A", "value": "plain"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "b"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "envFrom": [{"secretRef": {"name": "keys"}}],
        "processes": [{"name": "web", "command": "serve"}],
    }
    container = waiting_pod(template=template)["spec"]["containers"][0]

    # What the pod says about itself, only the kubelet can fill in.
    assert [each["name"] for each in container["env"]] == ["C", "SANDPOD_BIND_SHA256"]
    assert "envFrom" not in container


def test_its_wall_belongs_to_nobody_and_selects_its_pods() -> None:
    wall = plan({"network": {"egress": "None"}}).wall

    assert wall["metadata"]["ownerReferences"] == []
    selected = wall["spec"]["podSelector"]["matchLabels"]["sandpod.dev/network"]
    pod = waiting_pod(template={"network": {"egress": "None"}})
    assert pod["metadata"]["labels"]["sandpod.dev/network"] == selected
    # A label's value is at most 63 characters long.
    assert len(selected) <= 63


@pytest.mark.parametrize(
    "change",
    [
        {"env": [{"name": "A", "value": "b"}]},
        {"envFrom": [{"secretRef": {"name": "keys"}}]},
        {"processes": [{"name": "web", "command": "serve"}]},
        {"setup": ["make"]},
        {"sleepAfter": "1h"},
        {"keepAlive": True},
        {"ports": [{"port": 8080}]},
        {"network": {"egress": "None"}},
        {"lifetime": {"maxAge": "1h"}},
        {"isolation": "Standard"},
    ],
    ids=str,
)
def test_these_need_no_other_pod(change: Json) -> None:
    assert shape(change) == shape({})


@pytest.mark.parametrize(
    "change",
    [
        {"image": "other:1"},
        {"imagePullPolicy": "Always"},
        {"resources": {"requests": {"cpu": "1"}}},
        {"runtimeClassName": "gvisor"},
        {"priorityClassName": "batch"},
        {"serviceAccountName": "builder"},
        {"nodeSelector": {"disk": "fast"}},
        {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
        {"isolation": "Strict"},
        {"user": 1001},
        {"podTemplate": {"metadata": {"annotations": {"a": "b"}}}},
        {"podTemplate": {"spec": {"priorityClassName": "low"}}},
        {"workspace": {"size": "1Gi"}},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
    ],
    ids=str,
)
def test_these_need_another_pod(change: Json) -> None:
    assert shape(change) != shape({})


def test_a_volume_of_another_size_or_class_is_another_one() -> None:
    shapes = {
        shape({"workspace": workspace})
        for workspace in ({"size": "1Gi"}, {"size": "2Gi"}, {"size": "1Gi", "storageClassName": "fast"})
    }

    assert len(shapes) == 3
    assert shape({"workspace": {"size": "1Gi", "reclaim": "Retain"}}) in shapes


def test_no_warm_pod_has_somebodys_own_volume() -> None:
    assert shape({"workspace": {"claimName": "mine"}}) is None


def test_an_upgrade_of_the_runtime_makes_other_pods() -> None:
    after = installation(sandboxImage="sandpod/sandbox:0.2.0")

    assert shape_of(SandboxSpec(), installation=after) != shape({})


@given(st.from_regex(r"\A[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z"))
def test_every_pools_pods_have_names_that_are_host_names(pool: Any) -> None:
    name = fresh_name(pool)

    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= LONGEST


def test_names_cannot_be_guessed() -> None:
    assert len({fresh_name("python") for _ in range(200)}) > 190
