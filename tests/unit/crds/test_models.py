"""The models read what the API server sends and write what it wants."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from sandpod_crds.models import (
    Condition,
    PortStatus,
    Sandbox,
    SandboxPolicy,
    SandboxPool,
    SandboxStatus,
    SandboxTemplate,
)
from sandpod_crds.names import Phase

OBJECT: dict[str, Any] = {
    "apiVersion": "sandpod.dev/v1alpha1",
    "kind": "Sandbox",
    "metadata": {
        "name": "hello",
        "namespace": "team",
        "uid": "u-1",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {
        "image": "busybox",
        "sleepAfter": "1h30m",
        "user": "root",
        "isolation": "Strict",
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "resources": {"limits": {"cpu": 2, "memory": "1Gi"}},
        "podTemplate": {"spec": {"priorityClassName": "low"}},
        "ports": [{"port": 8080}],
        "lifetime": {"maxAge": 3600},
    },
    "status": {
        "phase": "Running",
        "podUID": "p-1",
        "podIP": "10.0.0.7",
        "startedAt": "2026-01-02T03:04:06.5Z",
    },
}


def test_an_object_is_read_with_its_durations_in_seconds_and_its_times_in_utc() -> None:
    sandbox = Sandbox.model_validate(OBJECT)
    assert sandbox.metadata.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert sandbox.spec.sleep_after == 5400
    assert sandbox.spec.lifetime is not None
    assert sandbox.spec.lifetime.max_age == 3600
    assert sandbox.spec.user == "root"
    assert sandbox.spec.env[1].value_from is not None
    assert sandbox.spec.pod_template is not None
    assert sandbox.spec.pod_template.spec == {"priorityClassName": "low"}
    assert (sandbox.status.phase, sandbox.status.pod_uid, sandbox.status.pod_ip) == (
        Phase.RUNNING,
        "p-1",
        "10.0.0.7",
    )


def test_a_sandbox_without_spec_or_status_has_the_defaults() -> None:
    sandbox = Sandbox.model_validate({"metadata": {"name": "hello"}})
    assert sandbox.spec.image is None
    assert sandbox.spec.isolation == "Standard"
    assert sandbox.spec.env == ()
    assert sandbox.spec.keep_alive is False
    assert sandbox.status.phase is None


def test_fields_of_a_newer_version_are_ignored() -> None:
    spec = {"image": "busybox", "teleport": True, "ports": [{"port": 8080, "colour": "red"}]}
    sandbox = Sandbox.model_validate({"metadata": {"name": "hello"}, "spec": spec, "extra": 1})
    assert sandbox.spec.to_json() == {"image": "busybox", "ports": [{"port": 8080}]}


def test_which_fields_are_set_can_be_told_from_those_that_are_not() -> None:
    sandbox = Sandbox.model_validate({"metadata": {"name": "hello"}, "spec": {"keepAlive": False}})
    assert sandbox.spec.model_fields_set == {"keep_alive"}


def test_a_spec_is_written_as_it_was_read() -> None:
    spec = Sandbox.model_validate(OBJECT).spec.to_json()
    assert Sandbox.model_validate({"metadata": {"name": "hello"}, "spec": spec}).spec.to_json() == spec
    assert spec["sleepAfter"] == "1h30m"
    assert spec["resources"] == {"limits": {"cpu": 2, "memory": "1Gi"}}


def test_a_status_is_written_with_the_names_and_times_of_kubernetes() -> None:
    status = SandboxStatus(
        phase=Phase.RUNNING,
        pod_uid="p-1",
        pod_ip="10.0.0.7",
        conditions=(
            Condition(type="Ready", status="True", last_transition_time=datetime(2026, 1, 2, tzinfo=UTC)),
        ),
        ports=(PortStatus(port=8080),),
    )
    assert status.to_json() == {
        "phase": "Running",
        "podUID": "p-1",
        "podIP": "10.0.0.7",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"}],
        "ports": [{"port": 8080}],
    }


def test_a_sandbox_cannot_be_changed_in_place() -> None:
    sandbox = Sandbox.model_validate(OBJECT)
    with pytest.raises(ValidationError, match="frozen"):
        sandbox.spec.image = "other"  # pyright: ignore[reportAttributeAccessIssue] - the point of the test


def test_a_pool_and_a_template_are_read_with_their_defaults() -> None:
    pool = SandboxPool.model_validate({"metadata": {"name": "p"}, "spec": {"templateRef": {"name": "t"}}})
    assert (pool.spec.replicas, pool.spec.min_ready_age, pool.spec.template_ref.name) == (1, 0, "t")
    template = SandboxTemplate.model_validate({"metadata": {"name": "t"}, "spec": {"image": "busybox"}})
    assert template.spec.image == "busybox"


def test_a_policy_tells_what_is_not_limited_from_what_is_forbidden() -> None:
    policy = SandboxPolicy.model_validate(
        {"metadata": {"name": "p"}, "spec": {"maxSandboxes": 0, "maxSleepAfter": "1h"}}
    )
    assert (policy.spec.max_sandboxes, policy.spec.max_sleep_after) == (0, 3600)
    assert (policy.spec.max_resources, policy.spec.allowed_images, policy.spec.allow_keep_alive) == (
        None,
        None,
        None,
    )
