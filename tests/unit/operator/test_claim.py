"""The PersistentVolumeClaim of a workspace: who may mount it at the same time."""

from typing import Any

import pytest
from sandpod_crds.models import Workspace
from sandpod_crds.names import SETTINGS_ENV
from sandpod_operator.resources.claim import build_claim
from sandpod_operator.settings import read_settings

from tests.support.monitoring import of_kind
from tests.support.operator_objects import installation

MODES: dict[str, tuple[dict[str, Any], str]] = {
    "one pod, in a class whose driver knows how": ({"storageClassName": "fast"}, "ReadWriteOncePod"),
    "the pods of one node, in any other class": ({"storageClassName": "slow"}, "ReadWriteOnce"),
    # Nobody here knows which one that is.
    "and in the cluster's default class": ({}, "ReadWriteOnce"),
}


@pytest.mark.parametrize("name", MODES)
def test_it_may_be_mounted_by(name: str) -> None:
    fields, mode = MODES[name]
    claim = build_claim(
        Workspace.model_validate({"size": "1Gi", **fields}),
        name="box-workspace",
        namespace="team",
        labels={},
        owner=None,
        settings=installation(exclusiveStorageClasses=["fast"]).settings,
    )

    assert claim["spec"]["accessModes"] == [mode]


def test_the_charts_exclusive_storage_classes_reach_the_operator() -> None:
    deployments = of_kind("Deployment", "sandboxes.exclusiveStorageClasses={fast,faster}")
    [operator] = [each for each in deployments if each["metadata"]["name"].endswith("-operator")]
    [container] = operator["spec"]["template"]["spec"]["containers"]
    [text] = [each["value"] for each in container["env"] if each["name"] == SETTINGS_ENV]

    assert read_settings({SETTINGS_ENV: text}).exclusive_storage_classes == ["fast", "faster"]
