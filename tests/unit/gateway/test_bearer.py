"""Whose a token is: what counts as one, what is made of the API server's answer, and what is remembered."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds.errors import Unavailable
from sandpod_gateway.bearer import Tokens, identity_of, token_in
from sandpod_gateway.errors import NotReady, TooMany, Unauthenticated
from sandpod_gateway.identity import Identity
from sandpod_gateway.rates import Buckets

Json = dict[str, Any]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Api:
    """A Kube of one endpoint."""

    def __init__(self) -> None:
        self.good: set[str] = {"good"}
        self.asked: list[str] = []
        self.failures: list[Unavailable] = []

    async def request(self, method: str, path: str, *, body: Json, timeout: float) -> Json:
        token = body["spec"]["token"]
        self.asked.append(token)
        if self.failures:
            raise self.failures.pop(0)
        return {"status": {"authenticated": token in self.good, "user": {"username": f"who-has-{token}"}}}


def ignore(**labels: str) -> None:
    """What is counted is none of these tests' business."""


def tokens(api: Api, clock: Clock, *, size: int = 4, burst: int = 100) -> Tokens:
    failures = Buckets(per_second=1, burst=burst, clock=clock)
    kube: Any = api
    return Tokens(kube=kube, cache_seconds=5, failures=failures, count=ignore, size=size, clock=clock)


@pytest.mark.parametrize("header", ["Bearer abc.DEF-1_2~3+4/5==", "bearer  abc.DEF-1_2~3+4/5== "])
def test_a_bearer_token_is_found(header: str) -> None:
    assert token_in(header) == "abc.DEF-1_2~3+4/5=="


@given(st.text())
def test_nothing_but_a_token_counts_as_one(text: str) -> None:
    with contextlib.suppress(Unauthenticated):
        found = token_in(f"Bearer {text}")
        assert found.isascii()
        assert found.isprintable()
        assert found == text.strip()


def test_the_users_whole_identity_counts() -> None:
    user = {"username": "jane", "uid": "u", "groups": ["a", "b"], "extra": {"z": ["1"], "k": ["2", "3"]}}

    assert identity_of({"status": {"authenticated": True, "user": user}}) == Identity(
        user="jane", uid="u", groups=("a", "b"), extra=(("k", ("2", "3")), ("z", ("1",)))
    )


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"user": {"username": "jane"}},
        {"authenticated": False, "user": {"username": "jane"}},
        {"authenticated": "true", "user": {"username": "jane"}},
        {"authenticated": True},
        {"authenticated": True, "user": {"username": ""}},
    ],
)
def test_without_a_plain_yes_it_is_nobody(status: Json | None) -> None:
    assert identity_of({"status": status}) is None


async def test_an_answer_holds_for_seconds_both_ways() -> None:
    api, clock = Api(), Clock()
    known = tokens(api, clock)

    for _ in range(2):
        assert (await known.identify("good", source="192.0.2.1")).user == "who-has-good"
        with pytest.raises(Unauthenticated):
            await known.identify("bad", source="192.0.2.1")
    assert api.asked == ["good", "bad"]
    clock.now += 6
    await known.identify("good", source="192.0.2.1")
    assert api.asked == ["good", "bad", "good"]


async def test_those_who_guess_push_nobody_out() -> None:
    api, clock = Api(), Clock()
    known = tokens(api, clock)
    await known.identify("good", source="192.0.2.1")

    for number in range(20):
        with pytest.raises(Unauthenticated):
            await known.identify(f"guess-{number}", source="192.0.2.2")
    await known.identify("good", source="192.0.2.1")

    assert api.asked.count("good") == 1


async def test_one_address_that_guesses_leaves_the_others_alone() -> None:
    api, clock = Api(), Clock()
    known = tokens(api, clock, burst=2)
    for number in range(2):
        with pytest.raises(Unauthenticated):
            await known.identify(f"guess-{number}", source="2001:db8::1")

    with pytest.raises(TooMany) as refused:
        await known.identify("good", source="2001:db8::2")
    assert refused.value.retry_after == 1
    assert (await known.identify("good", source="2001:db8:1::1")).user == "who-has-good"


async def test_good_tokens_use_nothing_up() -> None:
    api, clock = Api(), Clock()
    api.good = {f"good-{number}" for number in range(10)}
    known = tokens(api, clock, burst=1)

    for token in sorted(api.good):
        await known.identify(token, source="192.0.2.1")


async def test_one_that_was_good_and_is_no_more_is_nobodys_at_once() -> None:
    api, clock = Api(), Clock()
    known = tokens(api, clock, burst=1)
    await known.identify("good", source="192.0.2.1")
    api.good.clear()
    clock.now += 6

    with pytest.raises(Unauthenticated):
        await known.identify("good", source="192.0.2.1")
    with pytest.raises(TooMany):
        await known.identify("good", source="192.0.2.1")
    assert api.asked == ["good", "good"]


async def test_a_connection_that_was_closed_just_then_is_tried_again_once() -> None:
    api, clock = Api(), Clock()
    known = tokens(api, clock)
    api.failures = [Unavailable(0, "ConnectionFailed", "closed")]
    assert (await known.identify("good", source="192.0.2.1")).user == "who-has-good"

    api.failures = [Unavailable(503, "ServiceUnavailable", "down")]
    with pytest.raises(NotReady, match="could not be checked"):
        await known.identify("other", source="192.0.2.1")
