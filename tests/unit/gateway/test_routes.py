"""The route table: what is taken from a Sandbox, and how a request waits for one."""

from typing import Any

import pytest
from sandpod_gateway.routes import Route, RouteTable, key_of

KEY = ("default", "hello")
STARTING = Route(uid="u", phase="Starting")
READY = Route(uid="u", phase="Running", ready=True, pod_ip="10.0.0.1", pod_uid="p")


def sandbox(*, ready: str = "True", status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": "hello", "uid": "u", **metadata},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "podUID": "p",
            "conditions": [
                {"type": "Isolated", "status": "False", "reason": "No"},
                {"type": "Ready", "status": ready, "reason": "Why", "message": "Because"},
            ],
            **(status or {}),
        },
    }


def test_a_route_is_what_a_request_needs_to_know() -> None:
    assert key_of(sandbox()) == KEY
    assert Route.from_object(sandbox()) == Route(
        uid="u",
        phase="Running",
        ready=True,
        pod_ip="10.0.0.1",
        pod_uid="p",
        reason="Why",
        message="Because",
    )


@pytest.mark.parametrize(
    "item",
    [
        sandbox(ready="False"),
        sandbox(ready="Unknown"),
        sandbox(status={"podIP": None}),
        sandbox(status={"podUID": ""}),
        sandbox(status={"conditions": None}),
        sandbox(deletionTimestamp="2030-01-01T00:00:00Z"),
        {"metadata": {"namespace": "default", "name": "hello"}},
        {"metadata": {"namespace": "default", "name": "hello"}, "status": None},
    ],
)
def test_a_sandbox_without_a_pod_that_answers_is_not_ready(item: dict[str, Any]) -> None:
    assert not Route.from_object(item).ready


@pytest.mark.parametrize(
    ("phase", "starting"),
    [
        ("", True),
        ("Pending", True),
        ("Starting", True),
        ("Asleep", False),
        ("Failed", False),
        ("Draining", False),
    ],
)
def test_waiting_makes_sense_only_while_it_starts(phase: str, starting: bool) -> None:
    assert Route(uid="u", phase=phase).starting is starting
    assert not Route(uid="u", phase=phase, deleting=True).starting


def test_it_knows_who_is_paused_and_whose_wake_is_pending() -> None:
    item = sandbox(annotations={"sandpod.dev/wake-requested-at": "2"}, status={"wakeObserved": "1"})
    item["spec"] = {"paused": True}
    route = Route.from_object(item)

    assert (route.paused, route.wake, route.wake_observed, route.wake_pending) == (True, "2", "1", True)
    assert not Route(uid="u", wake="2", wake_observed="2").wake_pending
    # Somebody has removed the annotation: that asks for nothing.
    assert not Route(uid="u", wake_observed="2").wake_pending


def test_whoever_waits_for_a_sandbox_hears_of_it_and_of_no_other() -> None:
    table = RouteTable()
    with table.changes(KEY) as changed:
        table.put(("default", "other"), READY)
        assert not changed.is_set()

        table.put(KEY, STARTING)
        assert changed.is_set()
        changed.clear()
        table.remove(KEY)
        assert changed.is_set()


def test_a_list_replaces_everything_and_tells_everybody() -> None:
    table = RouteTable()
    table.put(("default", "phantom"), READY)
    table.put(KEY, STARTING)
    with table.changes(KEY) as changed:
        table.replace({KEY: READY})

        assert changed.is_set()
    assert table.get(KEY) == READY
    assert table.get(("default", "phantom")) is None
    assert len(table) == 1


def test_nothing_is_left_of_those_who_waited() -> None:
    table = RouteTable()
    with table.changes(KEY), table.changes(KEY):
        pass

    assert vars(table)["_waiting"] == {}
