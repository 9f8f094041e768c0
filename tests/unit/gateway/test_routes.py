"""The route table: what is taken from a Sandbox, and how a request waits for one."""

import asyncio
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


async def test_a_waiting_request_goes_on_as_soon_as_the_sandbox_is_ready() -> None:
    table = RouteTable()
    table.put(KEY, STARTING)
    waiting = asyncio.create_task(table.settled(KEY, timeout=60))
    await asyncio.sleep(0)

    table.put(("default", "other"), READY)
    table.put(KEY, STARTING)
    await asyncio.sleep(0)
    assert not waiting.done()
    table.put(KEY, READY)

    assert await waiting == READY


async def test_a_waiting_request_gives_up_in_time() -> None:
    table = RouteTable()
    table.put(KEY, STARTING)

    assert await table.settled(KEY, timeout=0.01) == STARTING
    assert await table.settled(("default", "unknown"), timeout=0.01) is None


async def test_a_waiting_request_hears_that_the_start_failed() -> None:
    table = RouteTable()
    table.put(KEY, STARTING)
    waiting = asyncio.create_task(table.settled(KEY, timeout=60))
    await asyncio.sleep(0)

    table.put(KEY, Route(uid="u", phase="Failed"))

    assert await waiting == Route(uid="u", phase="Failed")


async def test_a_list_replaces_everything_and_wakes_who_waits() -> None:
    table = RouteTable()
    table.put(("default", "phantom"), READY)
    table.put(KEY, STARTING)
    waiting = asyncio.create_task(table.settled(KEY, timeout=60))
    await asyncio.sleep(0)

    table.replace({KEY: READY})

    assert await waiting == READY
    assert table.get(("default", "phantom")) is None
    assert len(table) == 1


async def test_nothing_is_left_of_those_who_waited() -> None:
    table = RouteTable()
    waiting = [asyncio.create_task(table.settled(KEY, timeout=60)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    table.put(KEY, READY)
    table.remove(KEY)
    table.put(KEY, READY)

    assert await asyncio.gather(*waiting[1:]) == [READY, READY]
    assert vars(table)["_waiting"] == {}
