"""Globs and .gitignore files, held against git itself."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sandpod_runtime.search.gitignore import Ignored, Patterns
from sandpod_runtime.search.globs import GlobError, expanded, translated
from sandpod_runtime.search.walk import walk

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git says what is right")

_NAMES = st.sampled_from(["a", "b", "ab", "a.c", ".a", "a b", "[a]", "a*", "!a", "#a", "c-d", "\\a"])
_PIECES = st.sampled_from(
    ["a", "b", "ab", "*", "**", "?", "/", "/", "**/", "/**", "[ab]", "[!a]", "[a-c]", "[^b]", "[]a]", "[a-]",
     "[[:alpha:]]", "[[:foo:]]", "[[:a]", "\\*", "\\a", "\\", ".", "*.c", "[", " ", "\\ ", "#", "!",
     "***", "-", "]"]
)  # fmt: skip
# Two slashes in a row mean nothing; git has no rule for them that one could say.
_LINES = st.lists(_PIECES, min_size=1, max_size=6).map("".join).filter(lambda line: "//" not in line)


def matches(glob: str, name: str) -> bool:
    return any(re.compile(translated(one), re.DOTALL).match(name) for one in expanded(glob))


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", ".py"], ["a.pyc", "d/a.py"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.pyc"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "other/a"]),
        ("src/**/a", ["src/a", "src/x/a", "src/x/y/a"], ["a", "src/b"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("[!a-c]x", ["dx"], ["ax", "/x", "x"]),
        ("*.{c,h}", ["a.c", "a.h"], ["a.o", "a.{c,h}"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"], ["b", "ac"]),
        ("a{b}", ["a{b}"], ["ab"]),
        ("\\{a,b}", ["{a,b}"], ["a"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("**/x*y/**/z", ["xy/z", "q/x1y/r/s/z"], ["x/y/z"]),
        ("[]]", ["]"], ["["]),
    ],
)
def test_a_glob_matches_what_one_expects(glob: str, yes: list[str], no: list[str]) -> None:
    assert [name for name in yes if not matches(glob, name)] == []
    assert [name for name in no if matches(glob, name)] == []


@pytest.mark.parametrize("glob", ["[", "a[b", "a\\", "[[:nope:]]"])
def test_what_is_no_glob_is_refused(glob: str) -> None:
    with pytest.raises(GlobError):
        translated(glob)


def test_braces_do_not_multiply_without_bound() -> None:
    with pytest.raises(GlobError, match="256"):
        expanded("{a,b}" * 60)


def test_a_hostile_glob_costs_linear_time() -> None:
    expression = re.compile(translated("**/" + "*a" * 200 + "b"), re.DOTALL)
    assert expression.match("a" * 250 + "/" + "a" * 250) is None
    deep = re.compile(translated("**/a/" * 50 + "b"), re.DOTALL)
    assert deep.match("a/" * 500 + "c") is None


def test_a_line_counts_for_its_file_only() -> None:
    patterns = Patterns(["*.log", "!keep.log", "/top", "dir/", "a/b"])
    assert patterns.verdict("x/y.log", is_directory=False) is True
    assert patterns.verdict("x/keep.log", is_directory=False) is False
    assert patterns.verdict("x/top", is_directory=False) is None
    assert patterns.verdict("dir", is_directory=False) is None
    assert patterns.verdict("dir", is_directory=True) is True
    assert patterns.verdict("x/a/b", is_directory=False) is None


def _visible(root: Path) -> set[str]:
    problems: dict[str, str] = {}
    found = walk(str(root), rules=[Ignored(str(root))], failed=problems.__setitem__)
    assert problems == {}
    return {each.name for each in found if each}


@needs_git
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    top=st.lists(_LINES, max_size=4),
    nested=st.lists(_LINES, max_size=3),
    exclude=st.lists(_LINES, max_size=2),
    paths=st.lists(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8),
)
@example(top=["*", "!a", "!b/"], nested=["!*"], exclude=[], paths=["a/b", "b/a", "ab/b"])
@example(top=["a/**", "!a/b"], nested=["b/"], exclude=["\\ "], paths=["a/b", "a/a/b"])
def test_the_same_is_ignored_as_by_git(
    tmp_path_factory: pytest.TempPathFactory,
    top: list[str],
    nested: list[str],
    exclude: list[str],
    paths: list[str],
) -> None:
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".git/info/exclude").write_text("\n".join(exclude))
    for path in paths:
        if any((root / parent).is_file() for parent in Path(path).parents) or (root / path).exists():
            continue
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    (root / ".gitignore").write_text("\n".join(top))
    if (root / "a").is_dir():
        (root / "a/.gitignore").write_text("\n".join(nested))
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    )
    kept = {name for name in listing.stdout.decode().split("\0") if name}
    assert {name for name in _visible(root) if not (root / name).is_dir()} == kept


@needs_git
def test_the_files_above_the_root_of_a_walk_count(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\n/sub/x\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/.gitignore").write_text("y\n")
    for name in ("a.log", "x", "y", "z"):
        (tmp_path / "sub" / name).write_text("")
    assert _visible(tmp_path / "sub") == {".gitignore", "z"}
