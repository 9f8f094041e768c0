"""What is asked of a sandbox that shall sleep or wake, when that has worked, and how a list tells of it."""

from typing import Any

import pytest
from sandpod import _lifecycle
from sandpod._manifest import build
from sandpod.cli.list import age, row

Json = dict[str, Any]
NOON = 1_923_912_000.0  # 2030-12-19T12:00:00Z


def sandbox(*, ready: bool = True, spec: Json | None = None, asked: str = "", **status: Any) -> Json:
    condition = {"type": "Ready", "status": str(ready), "reason": "Starting", "message": ""}
    annotations = {"annotations": {_lifecycle.WAKE: asked}} if asked else {}
    return {
        "metadata": {"name": "demo", "namespace": "default", "generation": 2, **annotations},
        "spec": spec or {},
        "status": {"phase": "Running", "conditions": [condition], **status},
    }


def test_each_wake_has_a_value_of_its_own_that_is_a_time() -> None:
    values = {_lifecycle.fresh_value(NOON + 0.25) for _ in range(100)}
    assert len(values) > 90
    assert all(value.startswith("2030-12-19T12:00:00.250") and value.endswith("Z") for value in values)
    assert {len(value) for value in values} == {len("2030-12-19T12:00:00.250000000Z")}


def test_who_is_only_still_ready_is_not_awake_yet() -> None:
    assert not _lifecycle.is_awake(sandbox(), request="new")
    assert not _lifecycle.is_awake(sandbox(wakeObserved="old"), request="new")
    assert not _lifecycle.is_awake(sandbox(ready=False, wakeObserved="new"), request="new")
    assert _lifecycle.is_awake(sandbox(wakeObserved="new"), request="new")
    assert not _lifecycle.is_awake(sandbox(asked="new", wakeObserved="old"), request="new")


def test_a_request_that_another_one_was_written_over_is_fulfilled_with_that_one() -> None:
    assert not _lifecycle.is_awake(sandbox(asked="later"), request="mine")
    assert not _lifecycle.is_awake(sandbox(asked="later", wakeObserved="earlier"), request="mine")
    assert not _lifecycle.is_awake(sandbox(ready=False, asked="later", wakeObserved="later"), request="mine")
    assert _lifecycle.is_awake(sandbox(asked="later", wakeObserved="later"), request="mine")
    # Mine has been fulfilled, and then somebody asked.
    assert _lifecycle.is_awake(sandbox(asked="later", wakeObserved="mine"), request="mine")


def test_a_status_of_an_older_spec_does_not_tell_that_a_pause_is_over() -> None:
    assert not _lifecycle.is_resumed(sandbox(observedGeneration=1))
    assert not _lifecycle.is_resumed(sandbox(ready=False, observedGeneration=2))
    assert _lifecycle.is_resumed(sandbox(observedGeneration=2))


def test_a_list_tells_since_when_and_why() -> None:
    asleep = sandbox(
        ready=False, phase="Asleep", asleepSince="2030-12-19T09:00:00Z", sleepReason="Idle", sleepAfter="10m"
    )
    assert row(asleep, now=NOON) == ["demo", "Asleep", "3h", "Idle", "10m"]
    running = sandbox(startedAt="2030-12-19T11:59:15Z", sleepAfter="never")
    assert row(running, now=NOON) == ["demo", "Running", "45s", "", "never"]
    starting = sandbox(ready=False, phase="Starting", spec={"paused": True})
    assert row(starting, now=NOON) == ["demo", "Starting", "", "Starting", "paused"]
    assert row({"metadata": {"name": "new"}}, now=NOON) == ["new", "Pending", "", "", ""]


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")]
)
def test_an_age_is_as_short_as_kubectls(seconds: int, text: str) -> None:
    assert age("2030-12-19T12:00:00Z", now=NOON + seconds) == text
    assert age(None, now=NOON) == age("nonsense", now=NOON) == ""


def test_arguments_of_a_creation_become_fields_and_leave_the_rest_of_a_manifest() -> None:
    base: Json = {
        "spec": {
            "workspace": {"size": "1Gi", "reclaim": "Retain"},
            "processes": [{"name": "web", "command": "old", "port": 8080}, {"name": "other", "command": "x"}],
            "network": {"egress": "Restricted", "allow": [{"cidr": "10.0.0.0/8"}]},
            "setup": ["old"],
        }
    }
    made = build(
        base=base,
        name="demo",
        template="python",
        pool="warm",
        workspace="10Gi",
        storage_class="fast",
        setup=["one", "two"],
        processes={"web": "new", "more": "y"},
        egress="None",
    )
    assert made["spec"] == {
        "templateRef": {"name": "python"},
        "poolRef": {"name": "warm"},
        "workspace": {"size": "10Gi", "reclaim": "Retain", "storageClassName": "fast"},
        "setup": ["one", "two"],
        "processes": [
            {"name": "other", "command": "x"},
            {"name": "web", "command": "new", "port": 8080},
            {"name": "more", "command": "y"},
        ],
        "network": {"egress": "None", "allow": [{"cidr": "10.0.0.0/8"}]},
    }
    assert base["spec"]["workspace"]["size"] == "1Gi"
