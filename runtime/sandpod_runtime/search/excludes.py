"""The patterns that a client gives for what is to be left out: checked, and as rules for a walk."""

from collections.abc import Sequence

from sandpod_runtime.errors import invalid
from sandpod_runtime.search.gitignore import Excluded
from sandpod_runtime.search.globs import GlobError, translated
from sandpod_runtime.search.walk import Rules

MOST = 100
LONGEST = 1024


def excluded(patterns: Sequence[str], *, field: str) -> list[Rules]:
    """Each pattern is as a line of a .gitignore in the directory where the walk begins."""
    if len(patterns) > MOST:
        raise invalid(field, f"there may be at most {MOST} patterns")
    for pattern in patterns:
        problem = problem_of(pattern)
        if problem:
            raise invalid(field, problem, code="INVALID_PATTERN")
    return [Excluded(patterns)] if patterns else []


def problem_of(pattern: str) -> str | None:
    if len(pattern) > LONGEST:
        return f"a pattern is at most {LONGEST} characters long"
    if "\n" in pattern or "\0" in pattern:
        return "a pattern is one line"
    try:
        translated(pattern.removeprefix("!").strip("/"))
    except GlobError as error:
        return f"{pattern!r} is not a pattern: {error}"
    return None
