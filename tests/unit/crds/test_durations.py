"""Durations: what a person may write, and that writing and reading agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds import durations
from sandpod_crds.errors import BadDuration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45s", 45),
        ("10m", 600),
        ("1h30m", 5400),
        ("1h30m5.5s", 5405.5),
        ("0.5h", 1800),
        ("1500ms", 1.5),
        ("600", 600),
        ("0s", 0),
        ("8760h", 365 * 24 * 3600),
        (600, 600),
        (1.5, 1.5),
    ],
)
def test_a_duration_is_read_as_its_seconds(text: str | float, seconds: float) -> None:
    assert durations.parse(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1d",
        "10 m",
        "10M",
        "m",
        "-5s",
        "5s10m",
        "1.s",
        "1e3",
        "1,5s",
        "10m\n",
        "٣s",
        -1,
        float("nan"),
    ],
)
def test_what_is_no_duration_is_refused_with_an_example(text: str | float) -> None:
    with pytest.raises(BadDuration, match="is not a duration"):
        durations.parse(text)


@pytest.mark.parametrize("value", [True, False, None, [], "1" * 10])
def test_what_is_no_text_or_number_is_refused(value: object) -> None:
    with pytest.raises(BadDuration):
        durations.parse(value)  # pyright: ignore[reportArgumentType] - what an object from elsewhere may hold


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (45, "45s"), (600, "10m"), (5400, "1h30m"), (5405.5, "1h30m5s500ms"), (86400, "24h")],
)
def test_seconds_are_written_in_the_shortest_way(seconds: float, text: str) -> None:
    assert durations.format(seconds) == text


def test_negative_seconds_cannot_be_written() -> None:
    with pytest.raises(BadDuration):
        durations.format(-1)


@given(st.integers(min_value=0, max_value=87600 * 3600 * 1000))
def test_what_is_written_is_read_as_the_same_to_the_millisecond(milliseconds: int) -> None:
    assert durations.parse(durations.format(milliseconds / 1000)) == milliseconds / 1000


@given(st.integers(0, 99999), st.integers(0, 9999999), st.integers(0, 999999999))
def test_the_parts_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert durations.parse(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@given(st.text(max_size=12) | st.text("0123456789.hms ", max_size=12))
def test_no_text_does_anything_but_be_read_or_refused(text: str) -> None:
    try:
        assert durations.parse(text) >= 0
    except BadDuration:
        pass
    else:
        assert len(text) <= durations.MAX_LENGTH
