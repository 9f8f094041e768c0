"""Durations on the command line."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod._duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45s", 45),
        ("10m", 600),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        ("90", 90),
        ("0", 0),
        ("2h1s", 7201),
    ],
)
def test_people_may_write_durations_as_they_do_for_kubectl(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "10 m", "-5s", "1d", "ten", "5s\n", "1e3", "٣s", "inf", "nan", "1h-2m"]
)
def test_anything_else_is_answered_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="45s, 10m or 1h30m"):
        parse_duration(text)


def test_more_than_a_year_is_a_slip_of_the_finger() -> None:
    with pytest.raises(ValueError, match="longer than a year"):
        parse_duration("9" * 30)


@given(st.integers(10, 10**7))
def test_what_is_printed_can_be_typed_again(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.text())
def test_no_text_crashes_the_parser(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_duration(text) >= 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0004, "0.01s"),
        (0.62, "0.62s"),
        (3.14, "3.1s"),
        (59.7, "1m"),
        (120, "2m"),
        (5400, "1h30m"),
    ],
)
def test_a_time_is_told_as_exactly_as_anyone_cares(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
