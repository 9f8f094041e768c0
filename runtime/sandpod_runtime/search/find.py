"""Finding files by their names, in the worker."""

import heapq
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sandpod_runtime.clock import file_time
from sandpod_runtime.paths import shown
from sandpod_runtime.search.asked import Globs, walked
from sandpod_runtime.search.walk import Found

if TYPE_CHECKING:
    from sandpod_runtime.search.worker import Output

Json = dict[str, Any]
Entry = tuple[Found, os.stat_result]

_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


def find(request: Json, output: "Output", summary: Json) -> None:
    root: str = request["root"]
    entries = _matching(root, request, output, summary)
    sort = request["sort"]
    if sort is not None:
        # One more than wanted, which tells that there are more.
        entries = iter(heapq.nsmallest(request["limit"] + 1, entries, key=lambda each: _order(sort, each)))
    for found, info in entries:
        output.put(
            {
                "name": shown(found.name.rpartition("/")[2]),
                "absolutePath": shown(found.entry.path),
                "relativePath": shown(found.name),
                "type": _kind(info),
                "size": info.st_size,
                "modifiedAt": file_time(info.st_mtime),
            }
        )


def _matching(root: str, request: Json, output: "Output", summary: Json) -> Iterator[Entry]:
    globs = Globs([request["pattern"]])
    wanted = request["type"]
    summary["unreadable"] = 0

    def failed(name: str, reason: str) -> None:
        # A directory at the deepest level that was asked for is not a failure.
        summary["unreadable"] += name.count("/") + 1 < request["maxDepth"]

    for found in walked(root, request, failed=failed, deepest=request["maxDepth"] - 1):
        if output.is_late:
            # What was found until now can still be sorted.
            summary["truncated"].append("time")
            return
        if found is None or not globs.match(found.name):
            continue
        try:
            info = found.entry.stat(follow_symlinks=False)
        except OSError:
            continue  # it has gone since it was listed
        if wanted is None or _kind(info) == wanted:
            yield found, info


def _kind(info: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(info.st_mode), "other")


def _order(sort: str, entry: Entry) -> tuple[float, str]:
    found, info = entry
    if sort == "modified":
        return -info.st_mtime, found.name
    if sort == "size":
        return -info.st_size, found.name
    return 0, found.name
