"""The text frames of terminals, and the sizes in a query."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sandpod_runtime.surfaces.terminal_socket import side
from sandpod_runtime.terminal import control
from sandpod_runtime.terminal.control import ControlError, wanted_size
from sandpod_runtime.terminal.pty import Size

SIDES = st.integers(1, 4096)


@given(SIDES, SIDES)
def test_a_resize_is_understood(cols: int, rows: int) -> None:
    assert wanted_size(json.dumps({"type": "resize", "cols": cols, "rows": rows})) == Size(
        cols=cols, rows=rows
    )


@given(st.text())
def test_any_text_is_understood_ignored_or_refused(text: str) -> None:
    with suppress(ControlError):
        assert wanted_size(text) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(json_values, json_values)
@example(1, 1)
@example(1.0, 1)
def test_a_size_is_two_whole_numbers_within_bounds(cols: object, rows: object) -> None:
    text = json.dumps({"type": "resize", "cols": cols, "rows": rows})
    sensible = all(
        isinstance(each, int) and not isinstance(each, bool) and 1 <= each <= 4096 for each in (cols, rows)
    )
    if sensible:
        assert wanted_size(text) == (cols, rows)
    else:
        with pytest.raises(ControlError, match="from 1 to 4096"):
            wanted_size(text)


@given(st.text().filter(lambda kind: kind != "resize"), json_values)
def test_other_types_are_ignored(kind: str, more: object) -> None:
    assert wanted_size(json.dumps({"type": kind, "cols": more})) is None


def test_what_clients_are_told() -> None:
    assert json.loads(control.READY) == {"type": "ready"}
    assert json.loads(control.error("é")) == {"type": "error", "message": "é"}
    assert json.loads(control.ended(0, signal=None)) == {"type": "exit", "code": 0}
    assert json.loads(control.ended(137, signal="SIGKILL")) == {
        "type": "exit",
        "code": 137,
        "signal": "SIGKILL",
    }


@given(st.none() | st.text() | st.integers().map(str))
def test_a_side_in_a_query_is_a_number_within_bounds_or_not_given(text: str | None) -> None:
    found = side(text)
    assert 0 <= found <= 4096
    if found:
        assert text is not None
        assert int(text) == found


@pytest.mark.parametrize("text", ["0", "-1", "+5", "4097", "1e2", "٣", "", " 8", "9" * 5000])
def test_a_side_that_makes_no_sense_is_none(text: str) -> None:
    assert side(text) == 0
