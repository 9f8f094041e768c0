"""A quick look at a whole file must never miss a line that matches."""

import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_runtime.search.grep import Line

_PIECES = st.sampled_from(
    ["a", "b", ".", "^", "$", "\\b", "\\w+", "[ab]", "(a|b)", "(?:ab)", "*", "+?", "{1,2}", "\\s", "\\r",
     "\\A", "(?=b)", "(?<!a)", "\\Z", "a++", "\\n", "(?i)A", "[^a]", "|", "\\B", "(a)\\1", "\n"]
)  # fmt: skip
_TEXTS = st.lists(st.sampled_from(["a", "b", "ab", " ", "\n", "\r\n", "\r", "A", "ä"]), max_size=12).map(
    "".join
)


@settings(max_examples=400, deadline=None)
@given(pattern=st.lists(_PIECES, min_size=1, max_size=5).map("".join), text=_TEXTS, literal=st.booleans())
def test_no_line_that_matches_is_overlooked(pattern: str, text: str, literal: bool) -> None:
    for case_sensitive in (True, False):
        try:
            line = Line({"pattern": pattern, "literal": literal, "caseSensitive": case_sensitive})
        except re.error:
            return
        data = text.encode()
        if any(line.match(each) for each in io.BytesIO(data)):
            assert line.may_match(data)
