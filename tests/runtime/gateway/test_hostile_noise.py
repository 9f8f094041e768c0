"""Requests with something wrong in them, by the thousand; `make fuzz-previews` sends more."""

from tests.fuzz.previews import run
from tests.support.gateway_harness import Harness

COUNT = 2000
SEED = 1


async def test_malformed_requests_are_refused_and_leave_nothing_behind(built: Harness) -> None:
    report = await run(built, count=COUNT, seed=SEED)

    assert report.failures == []
    assert report.requests == COUNT
    # It was not all noise: some got through, most were refused.
    assert report.answers[200]
    assert report.answers[400]
