"""Token buckets and places: what is let through, what is said to those who wait, and what is forgotten."""

import pytest
from sandpod_gateway.errors import TooMany
from sandpod_gateway.rates import Buckets, Places, Rates, network_of, seconds


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_let_through_and_then_as_many_as_flow_back() -> None:
    clock = Clock()
    buckets = Buckets(per_second=2, burst=3, clock=clock)

    assert [buckets.take("jane") for _ in range(4)] == [0, 0, 0, 0.5]
    clock.now += 0.5
    assert [buckets.take("jane"), buckets.take("jane")] == [0, 0.5]
    clock.now += 3600
    assert [buckets.take("jane") for _ in range(4)] == [0, 0, 0, 0.5]


def test_one_that_is_empty_leaves_the_others_alone() -> None:
    buckets = Buckets(per_second=1, burst=1, clock=Clock())

    assert [buckets.take("jane"), buckets.take("jane"), buckets.take("joe")] == [0, 1, 0]


def test_what_is_given_back_can_be_taken_again_and_no_more_than_a_bucket_full() -> None:
    buckets = Buckets(per_second=1, burst=1, clock=Clock())

    assert buckets.take("jane") == 0
    buckets.give_back("jane")
    buckets.give_back("jane")
    assert [buckets.take("jane"), buckets.take("jane")] == [0, 1]


def test_no_number_of_names_fills_the_table() -> None:
    buckets = Buckets(per_second=1, burst=1, size=10, clock=Clock())

    for number in range(100):
        buckets.take(f"name-{number}")

    assert len(buckets) == 10


def test_one_name_has_its_share_of_places_and_all_have_them_all() -> None:
    places = Places(each=2, total=3, full="full")
    with places.enter("a"), places.enter("a"):
        with pytest.raises(TooMany), places.enter("a"):
            raise AssertionError
        with places.enter("b"), pytest.raises(TooMany), places.enter("c"):
            raise AssertionError
        assert places.taken == 2
    assert places.taken == 0


def test_who_is_too_fast_is_told_when_to_come_back_and_is_counted() -> None:
    counted: list[str] = []
    rates = Rates(
        users=Buckets(per_second=0.1, burst=1, clock=Clock()),
        sources=Buckets(per_second=100, burst=2, clock=Clock()),
        count=counted.append,
    )

    rates.admit_user("jane")
    with pytest.raises(TooMany, match='user "jane" sends requests faster') as refused:
        rates.admit_user("jane")
    rates.admit_source("192.0.2.1")
    rates.admit_source("192.0.2.1")
    with pytest.raises(TooMany, match=r"the address 192\.0\.2\.1"):
        rates.admit_source("192.0.2.1")

    assert refused.value.retry_after == 10
    assert counted == ["user", "source"]


@pytest.mark.parametrize(
    ("source", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_addresses_are_counted_by_whom_they_belong_to(source: str, network: str) -> None:
    assert network_of(source) == network


def test_retry_after_is_whole_seconds_and_never_none() -> None:
    assert [seconds(0.01), seconds(1.0), seconds(1.2)] == [1, 1, 2]
