"""In which namespaces a SandboxPolicy holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_operator.kinds import slim_namespace
from sandpod_operator.objects import Json
from sandpod_operator.policy import in_force, selects

LABELS = {"team": "red", "kubernetes.io/metadata.name": "lab"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"team": "red"}}, True),
        ({"matchLabels": {"team": "red", "stage": "test"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue", "red"]}]}, True),
        ({"matchExpressions": [{"key": "stage", "operator": "In", "values": ["test"]}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}, False),
        ({"matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "stage", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"team": "red"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
    ],
)
def test_a_selector_reads_labels_as_kubernetes_does(selector: Json, selected: bool) -> None:
    assert selects(selector, labels=LABELS) is selected


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz")), st.sampled_from("abc"))
def test_an_expression_and_its_opposite_never_agree(labels: dict[str, str], key: str) -> None:
    for one, other in (("In", "NotIn"), ("Exists", "DoesNotExist")):
        values = {"values": ["x"]} if one == "In" else {}
        answers = [
            selects({"matchExpressions": [{"key": key, "operator": operator, **values}]}, labels=labels)
            for operator in (one, other)
        ]
        assert sorted(answers) == [False, True]


def test_the_policies_in_force_are_those_that_select_the_namespace_by_name() -> None:
    objects: list[Json] = [
        {"metadata": {"name": "z"}, "spec": {}},
        {"metadata": {"name": "b"}, "spec": {"namespaceSelector": {"matchLabels": {"team": "blue"}}}},
        {"metadata": {"name": "a"}, "spec": {"namespaceSelector": {"matchLabels": {"team": "red"}}}},
    ]

    assert [each.metadata.name for each in in_force(objects, labels=LABELS)] == ["a", "z"]


def test_of_a_namespace_only_its_labels_are_kept() -> None:
    metadata: Json = {"name": "lab", "uid": "u", "resourceVersion": "1", "labels": LABELS}
    namespace: Json = {"metadata": {**metadata, "managedFields": [{}], "annotations": {"a": "b"}}, "spec": {}}

    assert slim_namespace(namespace) == {"metadata": metadata}
