"""Objects that share what they have in common."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sandpod_operator.sharing import shared

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES))
def test_it_says_the_same(obj: dict[str, Any]) -> None:
    before = json.dumps(obj)

    assert json.dumps(shared(obj)) == before == json.dumps(obj)


def test_two_objects_read_from_two_texts_have_their_words_in_common() -> None:
    one, other = (shared(json.loads('{"status": {"phase": "Running"}}')) for _ in range(2))

    assert one["status"] is not other["status"]
    assert one["status"]["phase"] is other["status"]["phase"]
    assert next(iter(one["status"])) is next(iter(other["status"]))
