"""Times as they are written on the wire."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.clock import file_time


@given(st.floats(allow_nan=False) | st.integers(-(1 << 63), (1 << 63) - 1))
def test_whatever_time_a_file_has_is_one_that_clients_can_read(seconds: float) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", file_time(seconds))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-30_610_224_000, "1000-01-01T00:00:00.000Z"),
        (1.5, "1970-01-01T00:00:01.500Z"),
        (253_402_300_799.999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_the_years_that_have_four_digits_are_told(seconds: float, shown: str) -> None:
    assert file_time(seconds) == shown
