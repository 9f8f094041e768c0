"""What `create` sends."""

from typing import Any

import pytest
from sandpod._manifest import build
from sandpod.errors import Invalid


def test_nothing_is_set_that_was_not_asked_for() -> None:
    assert build(name="demo") == {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "Sandbox",
        "metadata": {"name": "demo"},
        "spec": {},
    }


def test_without_a_name_the_cluster_makes_one_up() -> None:
    assert build()["metadata"] == {"generateName": "sandbox-"}


def test_arguments_become_fields() -> None:
    spec = build(name="a", image="x", sleep_after="1h", keep_alive=True, env={"A": "1"})["spec"]
    assert spec == {"image": "x", "sleepAfter": "1h", "keepAlive": True, "env": [{"name": "A", "value": "1"}]}


def test_a_size_is_asked_for_and_held_to() -> None:
    spec = build(name="a", cpu="2", memory="1Gi")["spec"]
    assert spec["resources"] == {
        "requests": {"cpu": "2", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }


def test_arguments_win_over_the_manifest_and_leave_the_rest_of_it() -> None:
    base: dict[str, Any] = {
        "kind": "Sandbox",
        "metadata": {"name": "theirs", "labels": {"a": "1"}},
        "spec": {
            "image": "old",
            "env": [{"name": "KEEP", "valueFrom": {"secretKeyRef": {}}}, {"name": "A", "value": "old"}],
            "resources": {"limits": {"cpu": "1", "ephemeral-storage": "1Gi"}},
        },
    }
    made = build(base=base, name="mine", image="new", env={"A": "new"}, cpu="2", labels={"b": "2"})
    assert made["metadata"] == {"name": "mine", "labels": {"a": "1", "b": "2"}}
    assert made["spec"]["image"] == "new"
    assert [entry["name"] for entry in made["spec"]["env"]] == ["KEEP", "A"]
    assert made["spec"]["env"][1] == {"name": "A", "value": "new"}
    assert made["spec"]["resources"]["limits"] == {"cpu": "2", "ephemeral-storage": "1Gi"}
    assert base["metadata"]["name"] == "theirs"


@pytest.mark.parametrize(
    "base", [{"kind": "Pod"}, {"apiVersion": "v1"}, {"spec": ["a"]}, {"spec": "x"}, {"metadata": ["a"]}]
)
def test_a_manifest_of_something_else_is_refused(base: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        build(base=base, name="a")
