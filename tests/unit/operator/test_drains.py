"""For how long a node's drain waits, and which pods it waits for meanwhile."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sandpod_crds.errors import Unavailable
from sandpod_operator.decide import decide
from sandpod_operator.drains import Drains
from sandpod_operator.kinds import POD_LABELS
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import Json
from sandpod_operator.observations import Key, Refusal
from sandpod_operator.reasons import Reason
from sandpod_operator.store import Store
from sandpod_operator.workqueue import WorkQueue

from tests.support.fake_clock import FakeClock
from tests.support.operator_api import Api
from tests.support.operator_objects import (
    INSTALLATION,
    KEY,
    NOW,
    POD_UID,
    UID,
    at,
    pod,
    running,
    sandbox,
    situation,
    starting,
    up,
)
from tests.support.operator_table import writes

HOUR = timedelta(hours=1)


class Nodes(Api):
    """An API server that has nodes, of which somebody has cordoned some."""

    def __init__(self) -> None:
        super().__init__(now=lambda: NOW)
        self.cordoned: dict[str, str | None] = {}
        self.away = False

    async def list(self, path: str, *, query: Any = None, metadata_only: bool = False) -> Json:
        assert path == "/api/v1/nodes"
        assert query == {"fieldSelector": "spec.unschedulable=true"}
        if self.away:
            raise Unavailable(503, "Unavailable", "not now")
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        return {
            "items": [
                {
                    "metadata": {"name": name},
                    "spec": {"taints": [{"key": "gpu"}, taint | ({"timeAdded": since} if since else {})]},
                }
                for name, since in self.cordoned.items()
            ]
        }


class Yard:
    def __init__(self) -> None:
        self.now: datetime = NOW
        self.api = Nodes()
        self.store = Store()
        self.clock = FakeClock()
        self.queue: WorkQueue[Key] = WorkQueue(clock=self.clock)
        self.metrics = Metrics()
        self.drains = Drains(
            cluster=self.api,
            store=self.store,
            queue=self.queue,
            patience=HOUR,
            metrics=self.metrics,
            now=lambda: self.now,
            clock=self.clock.time,
        )

    async def released(
        self, cordoned: Mapping[str, str | None], *, later: float = 0, put_forward: float = 0
    ) -> set[str]:
        """`put_forward` is by how much the clock on the wall was, beside what has passed."""
        self.clock.advance(later)
        self.now += timedelta(seconds=later + put_forward)
        self.api.cordoned = dict(cordoned)
        await self.drains.look()
        return set(self.store.released_nodes)


async def test_a_node_that_was_cordoned_an_hour_ago_is_waited_for_no_longer() -> None:
    assert await Yard().released({"old": at(-3600), "young": at(-3599)}) == {"old"}


async def test_one_that_does_not_say_since_when_is_counted_from_the_first_look() -> None:
    yard = Yard()
    assert await yard.released({"n": None}) == set()
    assert await yard.released({"n": None}, later=3599) == set()
    assert await yard.released({"n": None}, later=1) == {"n"}


async def test_its_time_begins_anew_when_it_was_uncordoned_in_between() -> None:
    yard = Yard()
    assert await yard.released({"n": at(-3600)}) == {"n"}
    assert await yard.released({}) == set()
    assert await yard.released({"n": at(0)}) == set()


@pytest.mark.parametrize("since", [at(0), None])
async def test_a_clock_that_is_put_releases_no_drain_and_holds_none(since: str | None) -> None:
    yard = Yard()
    assert await yard.released({"n": since}) == set()
    assert await yard.released({"n": since}, later=60, put_forward=7200) == set()
    assert await yard.released({"n": since}, later=3539, put_forward=-14400) == set()
    assert await yard.released({"n": since}, later=1) == {"n"}


async def test_a_node_that_is_cordoned_when_the_clock_is_put_waits_as_long_as_any() -> None:
    yard = Yard()
    await yard.released({})
    assert await yard.released({"n": at(0)}, later=60, put_forward=7200) == set()
    assert await yard.released({"n": at(0)}, later=3539) == set()
    assert await yard.released({"n": at(0)}, later=1) == {"n"}


async def test_one_that_says_since_when_by_a_clock_that_is_ahead_is_counted_from_the_first_look() -> None:
    yard = Yard()
    assert await yard.released({"n": at(7200)}) == set()
    assert await yard.released({"n": at(7200)}, later=3600) == {"n"}


async def test_its_time_begins_anew_when_it_was_cordoned_again_between_two_looks() -> None:
    yard = Yard()
    assert await yard.released({"n": at(-3600)}) == {"n"}
    assert await yard.released({"n": at(50)}, later=60) == set()
    assert await yard.released({"n": at(50)}, later=3589) == set()
    assert await yard.released({"n": at(50)}, later=1) == {"n"}


async def test_a_node_that_says_since_when_only_later_does_not_begin_anew() -> None:
    yard = Yard()
    await yard.released({"n": None})
    await yard.released({"n": at(1)}, later=60)
    assert await yard.released({"n": None}, later=3539) == set()
    assert await yard.released({"n": at(1)}, later=1) == {"n"}


async def test_the_sandboxes_there_are_looked_at_when_that_changes_and_only_then() -> None:
    yard = Yard()
    here, there = pod(), pod(name="other", uid="other")
    here["spec"]["nodeName"], there["spec"]["nodeName"] = "n", "m"
    for each in (here, there):
        yard.store.pods.observe(each)

    await yard.released({"n": at(-3600)})
    assert await yard.queue.get() == KEY
    assert len(yard.queue) == 0
    yard.queue.done(KEY)
    await yard.released({"n": at(-3600)})
    assert len(yard.queue) == 0
    await yard.released({})
    assert await yard.queue.get() == KEY


async def test_what_was_found_holds_while_the_api_server_is_away() -> None:
    yard = Yard()
    await yard.released({"n": at(-3600)})
    yard.api.away = True
    with pytest.raises(Unavailable):
        await yard.drains.look()

    assert yard.store.released_nodes == {"n"}


async def test_a_list_of_nodes_that_fails_is_counted() -> None:
    yard = Yard()
    yard.api.away = True
    running = asyncio.create_task(yard.drains.run())
    while not yard.metrics.errors.value(part="drains"):
        assert not running.done()
        await asyncio.sleep(0)
    running.cancel()

    assert yard.metrics.errors.value(part="drains", reason="Unavailable") == 1


ALWAYS: Json = {"keepAlive": True}
LONG_ENOUGH = {"drain_overdue": True}

LABELS: dict[str, tuple[Json, Json, dict[str, bool], str | None]] = {
    "a sandbox that may never sleep any more is not waited for, at once": (ALWAYS, {}, {}, None),
    "one that sleeps again is": ({}, ALWAYS, {}, "true"),
    "after an hour nobody is waited for": ({}, {}, LONG_ENOUGH, None),
}


@pytest.mark.parametrize("name", LABELS)
def test_the_label_follows_while_the_sandbox_runs(name: str) -> None:
    spec, made_from, told, label = LABELS[name]
    found = situation(sandbox(spec, running()), pod(made_from, up(since=-90)))
    plan = decide(replace(found, **told), now=NOW, installation=INSTALLATION)

    assert writes(plan) == ["patch pods"]
    metadata = plan.writes[0].body["metadata"]
    assert metadata == {"uid": POD_UID, "labels": {"sandpod.dev/protected": label}}


@pytest.mark.parametrize("spec", [{}, ALWAYS])
def test_a_label_that_is_right_is_left_alone(spec: Json) -> None:
    plan = decide(
        situation(sandbox(spec, running()), pod(spec, up(since=-90))), now=NOW, installation=INSTALLATION
    )

    assert "patch pods" not in writes(plan)


def test_a_pod_that_is_only_starting_is_not_written_to() -> None:
    given = situation(sandbox(ALWAYS, starting()), pod({}, up()))

    assert "patch pods" not in writes(decide(given, now=NOW, installation=INSTALLATION))


def test_what_the_api_server_does_not_allow_is_not_tried_again_and_again() -> None:
    refused = Refusal(
        sandbox_uid=UID,
        generation=1,
        reason=Reason.FORBIDDEN,
        message="no",
        retry_at=NOW + timedelta(seconds=15),
    )
    made = pod({}, up(since=-90))
    given = situation(sandbox(ALWAYS, running()), made, refusal=refused, refused=POD_LABELS)

    assert "patch pods" not in writes(decide(given, now=NOW, installation=INSTALLATION))
