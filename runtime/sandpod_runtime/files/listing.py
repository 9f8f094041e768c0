"""What is in a directory, and what a path is: entries as the protocol has them, and more."""

import contextlib
import os
import stat
from collections.abc import Iterator
from itertools import islice

from msgspec import UNSET

from sandpod_runtime.clock import file_time
from sandpod_runtime.files.accounts import groups, users
from sandpod_runtime.files.modes import symbolic
from sandpod_runtime.models.files import FileEntry, OwnerPermissions
from sandpod_runtime.paths import shown

# Sorting wants all names of a directory at once, and there may be millions.
_MOST_SORTED = 200_000


class Listing:
    """In the order of their names, a directory before what it holds. Links are not followed, and what cannot
    be read is left out.
    """

    def __init__(self, root: str, *, recursive: bool, hidden: bool, apart: str | None) -> None:
        """`hidden` concerns an entry's own name only: 0.12 lists what is visible below a hidden directory.
        Not so below `apart`, which is the runtime's own.
        """
        self._root = root
        self._recursive = recursive
        self._hidden = hidden
        self._apart = None if hidden else apart
        # Whether a directory had more in it than is sorted.
        self.truncated = False

    def entries(self) -> Iterator[FileEntry]:
        """The first step fails if the root is no directory that can be read."""
        users.refresh()
        groups.refresh()
        stack = [("", self._names(self._root))]
        while stack:
            above, names = stack[-1]
            name = next(names, None)
            if name is None:
                stack.pop()
                continue
            relative = above + name
            path = os.path.join(self._root, relative)
            try:
                found = os.lstat(path)
            except OSError:
                continue  # gone by now, or deeper than paths are long
            if self._hidden or not name.startswith("."):
                yield entry(path, found, relative=relative)
            if self._recursive and stat.S_ISDIR(found.st_mode) and relative != self._apart:
                with contextlib.suppress(OSError):
                    stack.append((f"{relative}/", self._names(path)))

    def _names(self, path: str) -> Iterator[str]:
        with os.scandir(path) as found:
            names = sorted(islice((each.name for each in found), _MOST_SORTED))
            self.truncated |= next(found, None) is not None
        return iter(names)


def entry(path: str, found: os.stat_result, *, relative: str) -> FileEntry:
    mode = found.st_mode
    name = os.path.basename(path.rstrip("/")) or "/"
    return FileEntry(
        name=shown(name),
        absolute_path=shown(tidied(path)),
        relative_path=shown(relative),
        type=_kind(mode),
        size=found.st_size,
        modified_at=file_time(found.st_mtime),
        mode=symbolic(mode),
        permissions=OwnerPermissions(
            readable=bool(mode & stat.S_IRUSR),
            writable=bool(mode & stat.S_IWUSR),
            executable=bool(mode & stat.S_IXUSR),
        ),
        octal=f"{stat.S_IMODE(mode):04o}",
        uid=found.st_uid,
        gid=found.st_gid,
        owner=users.of(found.st_uid),
        group=groups.of(found.st_gid),
        hidden=name.startswith("."),
        target=_target(path) if stat.S_ISLNK(mode) else UNSET,
    )


def tidied(path: str) -> str:
    """Without `.` and doubled slashes. `..` stays, as only the kernel knows what it means behind a link."""
    return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))


def _target(path: str) -> str:
    try:
        return shown(os.readlink(path))
    except OSError:
        return ""


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"
