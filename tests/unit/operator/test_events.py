"""Kubernetes events: one for one thing, counted when it repeats, bounded whatever happens."""

from datetime import datetime, timedelta

import pytest
from sandpod_crds.errors import Forbidden
from sandpod_crds.models import Sandbox
from sandpod_operator.events import MOST_PER_SANDBOX, MOST_WAITING, REMEMBERED_FOR, Recorder
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import Json
from sandpod_operator.plan import Notice, Tone

from tests.support.operator_api import Api
from tests.support.operator_objects import KEY, NOW, UID, sandbox

BOX = Sandbox.model_validate(sandbox())


class Desk:
    """A recorder at an API server whose time a test moves."""

    def __init__(self) -> None:
        self.time = NOW
        self.api = Api(now=self.now)
        self.metrics = Metrics()
        self.recorder = Recorder(cluster=self.api, instance="pod-1", metrics=self.metrics, now=self.now)

    def now(self) -> datetime:
        return self.time

    def tell(self, reason: str = "Crashed", message: str = "it died", sandbox: Sandbox = BOX) -> None:
        self.recorder.tell(sandbox, Notice(tone=Tone.WARNING, reason=reason, message=message))

    @property
    def events(self) -> list[Json]:
        return [obj for path, obj in self.api.objects.items() if "/events/" in path]


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_an_event_says_what_kubectl_describe_shows(desk: Desk) -> None:
    desk.tell()
    await desk.recorder.flush()

    event = desk.events[0]
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Crashed", "it died")
    assert event["involvedObject"]["uid"] == UID
    assert event["metadata"]["namespace"] == KEY.namespace
    assert (event["count"], event["firstTimestamp"]) == (1, "2026-11-18T12:00:00Z")


async def test_the_same_again_is_counted_on_the_first(desk: Desk) -> None:
    for _ in range(3):
        desk.tell()
        desk.time += timedelta(seconds=10)
    desk.tell("Started", "up")
    await desk.recorder.flush()

    assert {(e["reason"], e["count"], e["lastTimestamp"]) for e in desk.events} == {
        ("Crashed", 3, "2026-11-18T12:00:20Z"),
        ("Started", 1, "2026-11-18T12:00:30Z"),
    }


async def test_after_a_while_it_is_news_again(desk: Desk) -> None:
    desk.tell()
    await desk.recorder.flush()
    desk.time += REMEMBERED_FOR
    desk.tell()
    await desk.recorder.flush()

    assert [event["count"] for event in desk.events] == [1, 1]


async def test_an_event_that_kubernetes_has_forgotten_is_made_anew(desk: Desk) -> None:
    desk.tell()
    await desk.recorder.flush()
    desk.api.objects.clear()
    desk.tell()
    await desk.recorder.flush()

    assert [event["count"] for event in desk.events] == [1]


async def test_one_sandbox_cannot_fill_the_cluster_with_events(desk: Desk) -> None:
    other = Sandbox.model_validate(sandbox(uid="other"))
    for number in range(MOST_PER_SANDBOX + 20):
        desk.tell(f"Reason{number}")
    desk.tell(sandbox=other)
    await desk.recorder.flush()

    assert len(desk.events) == MOST_PER_SANDBOX + 1
    assert desk.metrics.events_dropped.value() == 20
    desk.time += REMEMBERED_FOR
    desk.tell("Later")
    await desk.recorder.flush()
    assert len(desk.events) == MOST_PER_SANDBOX + 2


async def test_a_storm_is_dropped_and_counted(desk: Desk) -> None:
    for number in range(MOST_WAITING + 5):
        desk.tell(sandbox=Sandbox.model_validate(sandbox(uid=str(number))))

    assert desk.metrics.events_dropped.value(cause="queue full") == 5


async def test_an_event_that_cannot_be_written_is_dropped_and_the_next_one_is_not(desk: Desk) -> None:
    def refuse(number: int, call: str) -> None:
        if number == 1:
            raise Forbidden(403, "Forbidden", "namespace is being terminated")

    desk.api.before = refuse
    desk.tell()
    desk.tell("Started")
    await desk.recorder.flush()

    assert [event["reason"] for event in desk.events] == ["Started"]
    assert desk.metrics.events_dropped.value(cause="error") == 1
    assert desk.metrics.errors.value(part="events", reason="Forbidden") == 1


def boxes(namespace: str, number: int) -> list[Sandbox]:
    return [
        Sandbox.model_validate(sandbox(uid=f"{namespace}-{each}", namespace=namespace))
        for each in range(number)
    ]


async def test_a_namespace_in_a_storm_keeps_no_other_waiting(desk: Desk) -> None:
    for box in (*boxes("storm", 100), *boxes("calm", 2), *boxes("quiet", 1)):
        desk.tell(sandbox=box)
    await desk.recorder.flush()

    first = [event["metadata"]["namespace"] for event in desk.events][:6]
    assert first == ["storm", "calm", "quiet", "storm", "calm", "storm"]
    assert len(desk.events) == 103


async def test_when_there_is_no_room_those_who_have_most_waiting_lose(desk: Desk) -> None:
    for box in (*boxes("storm", MOST_WAITING), *boxes("calm", 3)):
        desk.tell(sandbox=box)
    await desk.recorder.flush()

    told = [event["metadata"]["namespace"] for event in desk.events]
    assert (told.count("storm"), told.count("calm")) == (MOST_WAITING - 3, 3)
    assert desk.metrics.events_dropped.value(cause="queue full") == 3
