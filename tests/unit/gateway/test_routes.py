"""The route table: what is taken from a Sandbox, and how a request waits for one."""

from typing import Any

import pytest
from sandpod_gateway.routes import ExposedPort, Key, Route, RouteTable, key_of

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


def test_a_port_is_open_as_soon_as_the_spec_has_it_and_closed_as_soon_as_it_has_not() -> None:
    exposed = {"metadata": {"uid": "u"}, "spec": {"ports": [{"port": 8080, "tokenVersion": 3}]}}
    assert Route.from_object(exposed).ports == (ExposedPort(port=8080, private=False, token_version=3),)
    stale = exposed | {"spec": {}, "status": {"ports": [{"port": 8080, "url": "http://x/"}]}}
    assert Route.from_object(stale).ports == ()


def test_a_port_of_the_template_is_known_from_the_status_and_keeps_what_the_sandbox_does_not_say() -> None:
    inherited = {"port": 8080, "access": "Private", "tokenVersion": 2, "inherited": True}
    sandbox = {"metadata": {"uid": "u"}, "spec": {}, "status": {"ports": [inherited]}}
    assert Route.from_object(sandbox).ports == (ExposedPort(port=8080, private=True, token_version=2),)
    own = sandbox | {"spec": {"ports": [{"port": 8080, "tokenVersion": 5}]}}
    assert Route.from_object(own).ports == (ExposedPort(port=8080, private=True, token_version=5),)


def test_the_control_port_is_never_open_whatever_an_object_says() -> None:
    sandbox = {"metadata": {"uid": "u"}, "spec": {"ports": [{"port": 3000}, {"port": 80}, {"port": True}]}}
    assert Route.from_object(sandbox).ports == ()


def test_who_follows_the_table_hears_of_what_is_there_and_of_each_change() -> None:
    table = RouteTable()
    table.put(KEY, STARTING)
    heard: list[tuple[Key, Route | None, Route | None]] = []
    table.followed_by(lambda key, before, after: heard.append((key, before, after)))
    table.put(KEY, READY)
    table.replace({("b", "other"): READY})
    table.remove(("b", "other"))

    assert heard[:2] == [(KEY, None, STARTING), (KEY, STARTING, READY)]
    assert sorted(heard[2:4]) == [(("b", "other"), None, READY), (KEY, READY, None)]
    assert heard[4:] == [(("b", "other"), READY, None)]
