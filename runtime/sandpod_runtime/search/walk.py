"""Going through a tree, depth first, with bounded memory: one open directory for each level."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

# Each level costs an open directory while the walk is below it.
DEEPEST = 256


class Rules(Protocol):
    """What a walk leaves out; a directory that is left out is not entered."""

    def entered(self, name: str, *, path: str) -> None:
        """The walk is now in the directory of that name ("" for the root)."""
        ...

    def skips(self, name: str, *, is_directory: bool) -> bool: ...


class Found(NamedTuple):
    name: str  # relative to the root
    entry: os.DirEntry[str]
    is_directory: bool


class Hidden:
    """Leaves out what begins with a dot."""

    def entered(self, name: str, *, path: str) -> None: ...

    def skips(self, name: str, *, is_directory: bool) -> bool:
        return name.rpartition("/")[2].startswith(".")


class Paths:
    """Rules for a walk: leaves out exactly these."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def entered(self, name: str, *, path: str) -> None: ...

    def skips(self, name: str, *, is_directory: bool) -> bool:
        return name in self._names


def walk(
    root: str, *, rules: Sequence[Rules], failed: Callable[[str, str], None], deepest: int = DEEPEST
) -> Iterator[Found | None]:
    """Every entry below `root`, links not followed; None for one that is left out, so that whoever counts
    time is asked often enough. `failed` hears of directories that could not be read, and why. The root must
    be readable.
    """
    stack = [("", os.scandir(root))]
    _enter(rules, "", path=root)
    try:
        while stack:
            prefix, directory = stack[-1]
            if (entry := _next(prefix, directory, failed)) is None:
                directory.close()
                stack.pop()
                continue
            found = _looked_at(prefix, entry)
            if any(rule.skips(found.name, is_directory=found.is_directory) for rule in rules):
                yield None
                continue
            yield found
            if not found.is_directory:
                continue
            if len(stack) > deepest:
                failed(found.name, f"it is deeper than {deepest} directories, which is the limit")
                continue
            try:
                stack.append((f"{found.name}/", os.scandir(entry.path)))
            except OSError as error:
                failed(found.name, os.strerror(error.errno or 0))
            else:
                _enter(rules, found.name, path=entry.path)
    finally:
        for _, directory in stack:
            directory.close()


def _enter(rules: Sequence[Rules], name: str, *, path: str) -> None:
    for rule in rules:
        rule.entered(name, path=path)


def _next(
    prefix: str, directory: Iterator[os.DirEntry[str]], failed: Callable[[str, str], None]
) -> os.DirEntry[str] | None:
    try:
        return next(directory, None)
    except OSError as error:
        failed(prefix.removesuffix("/"), os.strerror(error.errno or 0))
        return None


def _looked_at(prefix: str, entry: os.DirEntry[str]) -> Found:
    try:
        is_directory = entry.is_dir(follow_symlinks=False)
    except OSError:
        is_directory = False  # some file systems do not say in the listing, and it has gone since
    return Found(name=prefix + entry.name, entry=entry, is_directory=is_directory)
