"""Finding a text, or a line, in a log that comes in any portions."""

import re

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.process.expectation import LONGEST_LINE, RegexFinder, TextFinder
from sandpod_runtime.process.linear_regex import Regex

TEXTS = st.text(alphabet="ab\n", max_size=30)


@given(chunks=st.lists(TEXTS), wanted=st.text(alphabet="ab\n", min_size=1, max_size=4))
def test_a_text_is_found_wherever_the_portions_end(chunks: list[str], wanted: str) -> None:
    finder = TextFinder(wanted)
    found = next((line for chunk in chunks if (line := finder.feed(chunk)) is not None), None)
    everything = "".join(chunks)
    assert (found is not None) == (wanted in everything)
    if found is not None:
        assert wanted in found


@given(chunks=st.lists(TEXTS), expression=st.sampled_from(["^ab", "a$", "^b+$", "aa|bb", "^$"]))
def test_a_line_is_found_wherever_the_portions_end(chunks: list[str], expression: str) -> None:
    finder = RegexFinder(Regex(expression))
    found = next((line for chunk in chunks if (line := finder.feed(chunk)) is not None), None)
    if found is None:
        found = finder.end()
    lines = "".join(chunks).split("\n")
    assert (found is not None) == any(re.search(expression, line) for line in lines)


def test_of_a_long_line_only_the_beginning_counts() -> None:
    finder = RegexFinder(Regex("b$|late"))
    assert finder.feed("a" * LONGEST_LINE + "late") is None
    assert finder.feed("b\nb\n") == "b"


def test_what_a_gap_separates_is_not_joined() -> None:
    for finder in (TextFinder("ready"), RegexFinder(Regex("ready"))):
        assert finder.feed("rea") is None
        finder.skip()
        assert finder.feed("dy") is None
