"""A pass that failed is counted and comes back, and the log says so when somebody has to know."""

import logging

import pytest
from sandpod_crds.errors import Conflict, Throttled
from sandpod_operator.failures import take_up
from sandpod_operator.metrics import Passes
from sandpod_operator.observations import Key
from sandpod_operator.workqueue import WorkQueue

from tests.support.fake_clock import FakeClock
from tests.support.operator_objects import KEY

BUSY = Throttled(429, "TooManyRequests", "too many requests", retry_after=7.0)
CHANGED = Conflict(409, "Conflict", "the object has been modified")
BROKEN = ValueError("that should not be")

ERRORS: dict[str, tuple[Exception, list[str]]] = {
    "what the API server refuses is a warning": (BUSY, ["WARNING"]),
    "a conflict is everyday": (CHANGED, []),
    "a mistake of ours is an error": (BROKEN, ["ERROR"]),
}


def some_passes() -> Passes:
    return Passes(what="thing", prefix="test")


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("what", ["sandbox", "pool"])
def test_a_failure_is_told_alike_for_sandboxes_and_pools(
    caplog: pytest.LogCaptureFixture, name: str, what: str
) -> None:
    error, levels = ERRORS[name]
    queue: WorkQueue[Key] = WorkQueue(clock=FakeClock())
    passes = some_passes()
    with caplog.at_level(logging.DEBUG, logger="sandpod_operator.failures"):
        take_up(error, what=what, key=KEY, queue=queue, passes=passes)

    assert [record.levelname for record in caplog.records] == levels
    assert all(record.getMessage().startswith(f"the {what} team/box: ") for record in caplog.records)
    assert passes.failures.value(reason=type(error).__name__) == 1
    assert queue.delayed == 1


async def test_it_comes_back_no_sooner_than_the_api_server_wants() -> None:
    clock = FakeClock()
    queue: WorkQueue[Key] = WorkQueue(clock=clock)
    take_up(BUSY, what="sandbox", key=KEY, queue=queue, passes=some_passes())
    clock.advance(6.9)
    assert len(queue) == 0
    clock.advance(0.1)
    assert len(queue) == 1
