"""What .gitignore files exclude, without git: an image may have none.

The same patterns serve wherever a client excludes something: one language for all of them.
"""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from sandpod_runtime.search.globs import GlobError, translated

# The sandbox writes these files: more than this is not read of one.
LARGEST_FILE = 65_536
MOST_PATTERNS = 1000


class Pattern(NamedTuple):
    expression: re.Pattern[str]
    negated: bool
    directories_only: bool
    by_name: bool


class Patterns:
    """The lines of one file; names are relative to the file's directory."""

    def __init__(self, lines: Iterable[str]) -> None:
        found = [pattern for line in lines if (pattern := _pattern(line)) is not None]
        # The last line that matches decides.
        self._found = found[:MOST_PATTERNS][::-1]

    def __bool__(self) -> bool:
        return bool(self._found)

    def verdict(self, name: str, *, is_directory: bool) -> bool | None:
        """Whether it is excluded; None when no line says anything."""
        last = name.rpartition("/")[2]
        for pattern in self._found:
            if pattern.directories_only and not is_directory:
                continue
            if pattern.expression.match(last if pattern.by_name else name):
                return not pattern.negated
        return None


class Excluded:
    """Rules for a walk: what a client's own patterns exclude."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = Patterns(lines)

    def entered(self, name: str, *, path: str) -> None: ...

    def skips(self, name: str, *, is_directory: bool) -> bool:
        return self._patterns.verdict(name, is_directory=is_directory) is True


class Ignored:
    """Rules for a walk: the .gitignore files of the tree, of the directories above it up to the top of its
    repository, and the repository's own info/exclude.
    """

    def __init__(self, root: str, *, keep_git: bool = False) -> None:
        """`.git` itself is left out as well, unless it is to be kept."""
        self._keep_git = keep_git
        # What was said above, with how to name an entry of the walk from there; the shallowest first.
        self._above: list[tuple[str, Patterns]] = []
        # What the directories say that lead to where the walk is.
        self._inside: list[tuple[str, Patterns]] = []
        self.repository = self._look_up(root)

    def entered(self, name: str, *, path: str) -> None:
        prefix = f"{name}/" if name else ""
        while self._inside and not prefix.startswith(self._inside[-1][0]):
            self._inside.pop()
        if patterns := _read(f"{path}/.gitignore"):
            self._inside.append((prefix, patterns))

    def skips(self, name: str, *, is_directory: bool) -> bool:
        if name.rpartition("/")[2] == ".git":
            return not self._keep_git
        for prefix, patterns in reversed(self._inside):
            if name.startswith(prefix):
                verdict = patterns.verdict(name[len(prefix) :], is_directory=is_directory)
                if verdict is not None:
                    return verdict
        for prefix, patterns in reversed(self._above):
            verdict = patterns.verdict(prefix + name, is_directory=is_directory)
            if verdict is not None:
                return verdict
        return False

    def _look_up(self, root: str) -> str | None:
        """The top of the repository that `root` is in, if it is in one."""
        # Physically: git does not see the links that led here.
        at = os.path.realpath(root)
        prefix = ""
        above: list[tuple[str, Patterns]] = []
        while not os.path.lexists(f"{at}/.git"):
            parent, _, last = at.rpartition("/")
            if not last:
                return None
            at, prefix = parent, f"{last}/{prefix}"
            above.append((prefix, _read(f"{at}/.gitignore")))
        above.append((prefix, _read(f"{at}/.git/info/exclude")))
        self._above = [each for each in reversed(above) if each[1]]
        return at or "/"


def _read(path: str) -> Patterns:
    try:
        # The sandbox may put a FIFO or a link to a device here.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return Patterns(())
    try:
        data = os.read(descriptor, LARGEST_FILE)
    except OSError:
        data = b""
    finally:
        os.close(descriptor)
    return Patterns(os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n"))


def _pattern(line: str) -> Pattern | None:
    line = _without_trailing_spaces(line.removesuffix("\r"))
    if line.startswith("#"):
        return None
    negated = line.startswith("!")
    glob = line[negated:]
    directories_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    if not glob:
        return None
    by_name = "/" not in glob
    glob = glob.removeprefix("/")
    # git compares what comes before the first wildcard by itself: `a**/b` is `a` and then `**/b`.
    literal = 0 if by_name else _literal_length(glob)
    try:
        expression = re.compile(re.escape(glob[:literal]) + translated(glob[literal:]), re.DOTALL)
    except GlobError:
        return None  # git knows of no error here either: such a line excludes nothing
    return Pattern(expression=expression, negated=negated, directories_only=directories_only, by_name=by_name)


def _literal_length(glob: str) -> int:
    return next((at for at, char in enumerate(glob) if char in "*?[\\"), len(glob))


def _without_trailing_spaces(line: str) -> str:
    end = at = 0
    while at < len(line):
        is_plain_space = line[at] == " "
        at += 2 if line[at] == "\\" else 1
        if not is_plain_space:
            end = at
    return line[:end]
