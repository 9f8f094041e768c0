"""What finding and grepping have in common: which files a request means."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sandpod_runtime.search.gitignore import Excluded, Ignored
from sandpod_runtime.search.globs import expanded, translated
from sandpod_runtime.search.walk import Found, Hidden, Rules, walk


class Globs:
    """Globs one of which has to match: without a slash a name, else the path below where the search began."""

    def __init__(self, globs: Sequence[str]) -> None:
        plain = [one.removeprefix("./") for glob in globs for one in expanded(glob)]
        self._names = [_compiled(glob) for glob in plain if "/" not in glob]
        self._paths = [_compiled(glob.removeprefix("/")) for glob in plain if "/" in glob]

    def match(self, name: str) -> bool:
        last = name.rpartition("/")[2]
        return any(each.match(last) for each in self._names) or any(each.match(name) for each in self._paths)


def _compiled(glob: str) -> "re.Pattern[str]":
    return re.compile(translated(glob), re.DOTALL)


def walked(
    root: str, request: dict[str, Any], *, failed: Callable[[str, str], None], deepest: int
) -> Iterator[Found | None]:
    rules: list[Rules] = []
    if not request["includeHidden"]:
        rules.append(Hidden())
    if request["exclude"]:
        rules.append(Excluded(request["exclude"]))
    if request["gitignore"]:
        rules.append(Ignored(root))
    return walk(root, rules=rules, failed=failed, deepest=deepest)
