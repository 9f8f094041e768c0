"""`make fuzz` in small: odd requests to every endpoint, and nothing is left of them."""

from collections.abc import Iterator

import pytest

from tests.fuzz.campaign import Campaign

REQUESTS = 1500


@pytest.fixture
def campaign() -> Iterator[Campaign]:
    campaign = Campaign(seed=4)
    yield campaign
    campaign.dispose()


def test_whatever_is_sent_the_answer_is_right_and_nothing_is_left(campaign: Campaign) -> None:
    report = campaign.run(REQUESTS)
    assert report.failures == [], f"to repeat: make fuzz N={REQUESTS} SEED={report.seed}"
    assert report.requests >= REQUESTS
