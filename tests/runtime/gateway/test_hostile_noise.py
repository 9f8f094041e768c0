"""Requests with something wrong in them, by the thousand; `make fuzz-previews` sends more."""

import tempfile
from pathlib import Path

from tests.fuzz.previews import Report, run
from tests.support.gateway_harness import Harness
from tests.support.haproxy import HAProxy

COUNT = 1000
SEED = 1


def nothing_failed(report: Report) -> None:
    assert report.failures == []
    assert report.requests == COUNT
    # It was not all noise: some got through, most were refused.
    assert report.answers[200]
    assert report.answers[400]


async def test_malformed_requests_are_refused_and_leave_nothing_behind(built: Harness) -> None:
    nothing_failed(await run(built, count=COUNT, seed=SEED))


async def test_malformed_requests_are_refused_by_haproxy_too(built: Harness) -> None:
    with tempfile.TemporaryDirectory(prefix="sandpod-") as folder:
        haproxy = HAProxy(Path(folder))
        try:
            report = await run(built, count=COUNT, seed=SEED, haproxy=haproxy)
        finally:
            haproxy.kill()
    nothing_failed(report)
    assert report.carried
