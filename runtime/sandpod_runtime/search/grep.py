"""Finding lines by what is in them, in the worker. A line at a time: what is not line by line grows."""

import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from sandpod_runtime.paths import shown
from sandpod_runtime.search.asked import Globs, walked

if TYPE_CHECKING:
    from sandpod_runtime.search.worker import Output

Json = dict[str, Any]

_DEEPEST = 256
_LOOKED_AT = 8192
# Files up to here are read at once: most of them have no match at all, which is quickly seen.
_READ_AT_ONCE = 4 << 20
_LOOKS_AROUND = re.compile(r"\(\?(?!:)|\\[AZ]|[*+?}]\+")
# So many lines pass between two looks at the clock.
_LINES = 2000


class Line:
    """Whether a line matches, and where."""

    def __init__(self, request: Json) -> None:
        flags = 0 if request["caseSensitive"] else re.IGNORECASE
        pattern: str = request["pattern"]
        self._expression = re.compile(re.escape(pattern) if request["literal"] else pattern, flags)
        # Most lines do not have it, and need not become text for that to be seen.
        self._needle = pattern.encode() if request["literal"] and request["caseSensitive"] else None
        # The same for many lines at once. What looks around, or never goes back, would see beyond its line.
        self._anywhere = None
        if self._needle is None and (request["literal"] or not _LOOKS_AROUND.search(pattern)):
            self._anywhere = re.compile(self._expression.pattern, flags | re.MULTILINE)

    def may_match(self, data: bytes) -> bool:
        """False when no line of these does."""
        if self._needle is not None:
            return self._needle in data
        if self._anywhere is None:
            return True
        text = data.decode("utf-8", "replace")
        if "\r" in text:
            text = text.replace("\r\n", "\n").removesuffix("\r")
        return self._anywhere.search(text) is not None

    def match(self, line: bytes) -> "tuple[str, re.Match[str]] | None":
        if self._needle is not None and self._needle not in line:
            return None
        text = text_of(line)
        found = self._expression.search(text)
        return (text, found) if found else None


def text_of(line: bytes) -> str:
    return line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


def grep(request: Json, output: "Output", summary: Json) -> None:
    summary |= {"unreadable": 0, "filesMatched": 0, "filesSearched": 0, "binarySkipped": 0, "largeSkipped": 0}
    line = Line(request)
    for name, path in _files(request, output, summary):
        output.check_time()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            summary["unreadable"] += 1
            continue
        with os.fdopen(descriptor, "rb") as file:
            _search(file, (name, path), line, request, output, summary)


def _files(request: Json, output: "Output", summary: Json) -> Iterator[tuple[str, str]]:
    root: str = request["root"]
    include = Globs(request["include"])
    if not stat.S_ISDIR(os.stat(root).st_mode):  # noqa: PTH116 (a Path would tidy it)
        yield root.rpartition("/")[2], root
        return

    def failed(name: str, reason: str) -> None:
        summary["unreadable"] += 1

    for found in walked(root, request, failed=failed, deepest=_DEEPEST):
        output.check_time()
        # Links to files are not followed: the file is found where it is, or was not asked for.
        if found is None or found.is_directory or not found.entry.is_file(follow_symlinks=False):
            continue
        if not request["include"] or include.match(found.name):
            yield found.name, found.entry.path


def _search(
    file: BinaryIO, names: tuple[str, str], line: Line, request: Json, output: "Output", summary: Json
) -> None:
    from sandpod_runtime.search.worker import Full

    info = os.fstat(file.fileno())
    if not stat.S_ISREG(info.st_mode):
        return
    if info.st_size > request["maxFileSize"]:
        summary["largeSkipped"] += 1
        return
    try:
        head = file.read(_READ_AT_ONCE)
        if b"\0" in head[:_LOOKED_AT]:
            summary["binarySkipped"] += 1
            return
        summary["filesSearched"] += 1
        if len(head) < _READ_AT_ONCE and not line.may_match(head):
            return
        file.seek(0)
        is_first = True
        for found in _matches(file, line, request, output):
            if is_first and summary["filesMatched"] == request["maxFiles"]:
                raise Full("files")
            output.put({"absolutePath": shown(names[1]), "relativePath": shown(names[0]), **found})
            summary["filesMatched"] += is_first
            is_first = False
        if not is_first:
            # The next file may be the one that the expression never comes back from.
            sys.stdout.flush()
    except OSError:
        summary["unreadable"] += 1


def _matches(file: BinaryIO, line: Line, request: Json, output: "Output") -> Iterator[Json]:
    """A match is given out when the lines after it are known."""
    before: deque[str] = deque(maxlen=request["before"])
    waiting: deque[Json] = deque()
    longest: int = request["maxLineLength"]
    has_context = request["before"] or request["after"]
    for number, raw in enumerate(file, 1):
        if number % _LINES == 0:
            output.check_time()
        while waiting and number > waiting[0]["line"] + request["after"]:
            yield waiting.popleft()
        shown_line = text_of(raw)[:longest] if has_context else ""
        for each in waiting:
            each["after"].append(shown_line)
        if found := line.match(raw):
            waiting.append(_described(number, *found, before=before, request=request))
        before.append(shown_line)
    yield from waiting


def _described(
    number: int, text: str, match: "re.Match[str]", *, before: "deque[str]", request: Json
) -> Json:
    longest: int = request["maxLineLength"]
    start = match.start()
    found: Json = {"line": number, "column": start + 1, "length": match.end() - start, "text": text}
    if len(text) > longest:
        # The match stands in the middle, and begins in sight even when it is longer than that.
        at = max(0, min(start - (longest - min(longest, match.end() - start)) // 2, len(text) - longest))
        found |= {"text": text[at : at + longest], "textStartsAt": at + 1}
    if request["before"]:
        found["before"] = list(before)
    if request["after"]:
        found["after"] = []
    return found
