"""Regular expressions that cannot take for ever: they find what Python's own find."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_runtime.process.linear_regex import MOST_PLACES, Regex, RegexError

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        r"\d",
        r"\w",
        r"\S",
        r"\b",
        r"\B",
        "^",
        "$",
        "1",
        "_",
        r"\.",
        "[a-c1]",
        "",
    ]
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{0,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda each: f"({each})"),
        inner.map(lambda each: f"(?i:{each})"),
    )


EXPRESSIONS = st.recursive(ATOMS, grown, max_leaves=8)


@settings(max_examples=500)
@given(expression=EXPRESSIONS, line=st.text(alphabet="abAc1_ .", min_size=1, max_size=12))
def test_it_finds_what_python_finds(expression: str, line: str) -> None:
    assert Regex(expression).search(line) == (re.search(expression, line) is not None)


@pytest.mark.parametrize(
    ("expression", "line", "found"),
    [
        (r"listening on .*:\d+", "now listening on http://localhost:3000/", True),
        (r"^ready$", "ready", True),
        (r"^ready$", "already", False),
        (r"(?i)READY", "ist ready", True),
        ("größe|ß", "die Größe", True),
        ("x{3}", "axxxb", True),
        ("", "anything", True),
    ],
)
def test_ordinary_expressions(expression: str, line: str, found: bool) -> None:
    assert Regex(expression).search(line) is found


@pytest.mark.parametrize(
    "expression", [r"(a+)+$", r"(a|a)*b", r"(.*)*x", r"((a?){20}){20}a{20}", "(" * 40 + "a" + ")*" * 40]
)
def test_what_ruins_others_takes_no_time(expression: str) -> None:
    Regex(expression).search("a" * 2000 + "!")


@pytest.mark.parametrize(
    "expression",
    [
        "(",
        "*",
        r"(a)\1",
        "(?=a)b",
        "(?<!a)b",
        "a{99999}",
        "(?:a{50}){50}",
        "(" * 5000 + ")" * 5000,
        f"a{{{MOST_PLACES}}}b",
        "(?>a)b",
        "a++",
    ],
)
def test_what_cannot_be_bounded_is_refused(expression: str) -> None:
    with pytest.raises(RegexError):
        Regex(expression)
