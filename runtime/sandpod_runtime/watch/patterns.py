"""The protocol's patterns for paths: `*` within a segment, `**` anything, `?` one character, the
rest literal.

One matches when it covers whole consecutive segments anywhere in the path, and therefore also everything
below what it names.
"""

import re
from collections.abc import Callable, Iterable

DEFAULT_EXCLUDE = (".git", "node_modules", ".DS_Store")
LONGEST = 1024
# Some tools read these as more than themselves; the protocol refuses them.
_RESERVED = "\0[]{}"

Matches = Callable[[str], bool]


def problem(pattern: str) -> str | None:
    """Why this cannot be a pattern, or None."""
    if not pattern.strip():
        return "a pattern cannot be blank"
    if len(pattern) > LONGEST:
        return f"a pattern is at most {LONGEST} characters long"
    if any(character in pattern for character in _RESERVED):
        return "a pattern cannot hold NUL, [, ], { or }"
    return None


def matcher(pattern: str) -> Matches:
    """Whether a path has segments that `pattern` covers."""
    pattern = pattern.rstrip("/") or "/"
    if "*" not in pattern and "?" not in pattern:
        if pattern.startswith("/"):
            return lambda path: f"{path}/".startswith(f"{pattern}/")
        return lambda path: f"/{pattern}/" in f"/{path}/"
    expression = re.compile(_translated(pattern), re.DOTALL)
    return lambda path: expression.match(path) is not None


def _translated(pattern: str) -> str:
    """An expression for `match`, each part of which is atomic.

    Backtracking could take ages over a pattern like `*a*a*a*b`, and `re` lets nothing else run meanwhile.
    It is never needed: what follows a star may as well begin at the first place that it can.
    """
    chunks = [_chunk(chunk) for chunk in re.split(r"\*\*+", pattern)]
    last = len(chunks) - 1
    expressions = [_bounded(chunk, last=number == last) for number, chunk in enumerate(chunks)]
    return f"(?>(?:.*?/)??{expressions[0]})" + "".join(f"(?>.*?{each})" for each in expressions[1:])


def _bounded(pieces: list[str], *, last: bool) -> str:
    end = "(?=/|$)" if last else ""
    first, *others = [*pieces[:-1], pieces[-1] + end]
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others)


def _chunk(text: str) -> list[str]:
    """What stands between two `**`, cut at each `*`."""
    return [
        "".join("[^/]" if each == "?" else re.escape(each) for each in piece) for piece in text.split("*")
    ]


class Filter:
    """Which paths below `root` are wanted."""

    def __init__(
        self, *, root: str, include: Iterable[str], exclude: Iterable[str], apart: str | None = None
    ) -> None:
        """`apart` and what is in it are never wanted, unless they were asked for."""
        self._apart = None if apart is None or f"{root}/".startswith(f"{apart}/") else apart
        self._include = [matcher(pattern) for pattern in include]
        excluding = [matcher(pattern) for pattern in exclude]
        # Nobody means to exclude what is to be watched: a pattern that covers the root is for what is below.
        self._exclude = [matches for matches in excluding if not matches(root)]
        self._exclude_below = [matches for matches in excluding if matches(root)]
        self._below = len(root.rstrip("/"))

    def excludes(self, path: str) -> bool:
        """So also everything below it."""
        if self._apart is not None and f"{path}/".startswith(f"{self._apart}/"):
            return True
        if any(matches(path) for matches in self._exclude):
            return True
        return bool(self._exclude_below) and any(
            matches(path[self._below :]) for matches in self._exclude_below
        )

    def wants(self, path: str) -> bool:
        if self.excludes(path):
            return False
        return not self._include or any(matches(path) for matches in self._include)
