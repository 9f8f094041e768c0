"""The protocol's patterns: what they cover, and that no pattern takes ages."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_runtime.watch.patterns import DEFAULT_EXCLUDE, Filter, matcher, problem


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("*.py", "/w/a.py", True),
        ("*.py", "/w/a/b/c.py", True),
        ("*.py", "/w/a.pyc", False),
        ("*.py", "/w/a.py/below", True),
        ("node_modules", "/w/node_modules/x/y", True),
        ("node_modules", "/w/my_node_modules/x", False),
        ("src/*.ts", "/w/src/a.ts", True),
        ("src/*.ts", "/w/src/a/b.ts", False),
        ("src/**", "/w/src/a/b.ts", True),
        ("src/**/b.ts", "/w/src/a/b.ts", True),
        ("**/b.ts", "/w/b.ts", True),
        ("a?c", "/w/abc", True),
        ("a?c", "/w/a/c", False),
        ("a*c", "/w/a/c", False),
        ("a**c", "/w/a/c", True),
        ("/w/src", "/w/src/a", True),
        ("/src", "/w/src/a", False),
        ("a.b", "/w/aXb", False),
        ("dist/", "/w/dist/x", True),
        ("ä*", "/w/äö", True),
        ("*", "/w/with\nnewline|pipe", True),
    ],
)
def test_a_pattern_covers_whole_segments(pattern: str, path: str, covered: bool) -> None:
    assert matcher(pattern)(path) is covered


def obviously(pattern: str, path: str) -> bool:
    """The same in words that cannot be wrong: every place to begin, every way to go on."""

    @cache
    def at(rest: str, position: int) -> bool:
        if not rest:
            return position == len(path) or path[position] == "/"
        if rest.startswith("**"):
            return any(at(rest[2:], later) for later in range(position, len(path) + 1))
        if rest.startswith("*"):
            end = path.find("/", position)
            end = len(path) if end < 0 else end
            return any(at(rest[1:], later) for later in range(position, end + 1))
        if position == len(path):
            return False
        fits = path[position] != "/" if rest[0] == "?" else path[position] == rest[0]
        return fits and at(rest[1:], position + 1)

    return any(at(pattern, start) for start in range(len(path) + 1) if start == 0 or path[start - 1] == "/")


PATTERNS = st.text("ab/*?", min_size=1, max_size=9).filter(lambda each: not each.endswith("/"))
PATHS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map(
    lambda segments: f"/{'/'.join(segments)}"
)


@settings(max_examples=3000, deadline=None)
@given(pattern=PATTERNS, path=PATHS)
def test_patterns_mean_what_they_say(pattern: str, path: str) -> None:
    assert matcher(pattern)(path) == obviously(pattern, path)


@given(pattern=PATTERNS, path=PATHS, name=st.text("ab", min_size=1, max_size=3))
def test_what_covers_a_directory_covers_what_is_below(pattern: str, path: str, name: str) -> None:
    if matcher(pattern)(path):
        assert matcher(pattern)(f"{path}/{name}")


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "pattern", ["*a" * 100 + "b", "**a" * 100 + "b", "**/*a?" * 50 + "b", "a*/" * 60 + "b"]
)
def test_no_pattern_takes_ages(pattern: str) -> None:
    for path in ("/" + "a" * 255, "/" + "a/" * 2000, "/" + ("a" * 200 + "/") * 20):
        assert not matcher(pattern)(path)


@pytest.mark.parametrize("pattern", ["", "  ", "a[b]", "{a,b}", "a\0", "x" * 1025])
def test_what_cannot_be_a_pattern_has_a_reason(pattern: str) -> None:
    assert problem(pattern)


def test_without_patterns_everything_is_wanted() -> None:
    assert Filter(root="/w", include=(), exclude=()).wants("/w/.git/x")


def test_include_wants_only_what_it_covers() -> None:
    wanted = Filter(root="/w", include=["*.py", "docs"], exclude=())
    assert wanted.wants("/w/a.py")
    assert wanted.wants("/w/docs/a.md")
    assert not wanted.wants("/w/a.md")
    assert not wanted.excludes("/w/a.md"), "below it there may be something that is wanted"


def test_what_is_the_runtimes_own_is_never_wanted_unless_it_is_watched() -> None:
    for include in ((), ["*.json"]):
        wanted = Filter(root="/w", include=include, exclude=(), apart="/w/.own")
        assert not wanted.wants("/w/.own/state.json")
        assert wanted.excludes("/w/.own")
        assert wanted.wants("/w/.owner/state.json")
        assert Filter(root="/w/.own/x", include=include, exclude=(), apart="/w/.own").wants(
            "/w/.own/x/y.json"
        )


def test_what_is_watched_itself_is_never_excluded() -> None:
    wanted = Filter(root="/w/node_modules/left-pad", include=(), exclude=DEFAULT_EXCLUDE)
    assert wanted.wants("/w/node_modules/left-pad/index.js")
    assert not wanted.wants("/w/node_modules/left-pad/node_modules/x.js")
    assert not wanted.wants("/w/node_modules/left-pad/.git")
