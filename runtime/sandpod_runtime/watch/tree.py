"""One directory, with all below it or not, as inotify tells of it: changes by path.

inotify knows single directories only. New ones are looked through, because what is in them may be older than
their watch; of renamed ones the paths are kept right; of those that leave, the watches are removed.

Everything here blocks on file systems and runs in a thread, one call at a time.
"""

import os
import posixpath
import select
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress

from sandpod_runtime.files.temporary import PREFIX
from sandpod_runtime.watch import inotify
from sandpod_runtime.watch.inotify import Inotify, LimitError, Raw
from sandpod_runtime.watch.patterns import Filter
from sandpod_runtime.watch.pending import Change, Kind

KINDS: dict[int, Kind] = {
    inotify.CREATE: "create",
    inotify.MODIFY: "modify",
    inotify.DELETE: "delete",
    inotify.MOVED_FROM: "move_from",
    inotify.MOVED_TO: "move_to",
    inotify.ATTRIB: "attrib",
}
_ALWAYS = inotify.CREATE | inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO
_GONE = inotify.DELETE_SELF | inotify.MOVE_SELF
# Both halves of a rename are told at nearly the same moment.
_OTHER_HALF_MS = 10
# More are found in new directories only where a huge one is moved in.
_MOST_FOUND = 100_000
_MOST_PER_TURN = 4096


class EndedError(Exception):
    """What was watched is gone; no failure."""


class LostError(Exception):
    """Changes were not seen, so nobody can rely on this watch any longer."""


class Places:
    """How many directories may be watched at once, by all trees together; these are in several threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        with self._lock:
            if self._taken >= self.most:
                raise LimitError(f"the runtime watches {self.most} directories, which is its limit")
            self._taken += 1

    def give(self, count: int) -> None:
        with self._lock:
            self._taken -= count


class Tree:
    def __init__(
        self,
        *,
        root: str,
        workspace: str,
        recursive: bool,
        kinds: frozenset[Kind],
        wanted: Filter,
        places: Places,
    ) -> None:
        self._root = root
        self._workspace = workspace
        self._recursive = recursive
        self._kinds = kinds
        self._filter = wanted
        self._places = places
        self._mask = sum(bit for bit, kind in KINDS.items() if kind in kinds or bit & _ALWAYS)
        self._mask |= _GONE | inotify.ONLY_DIRECTORY | inotify.EXCLUDE_UNLINKED
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._above: set[int] = set()
        # Only this is watched, of the directory that it is in: an editor replaces a file by another.
        self._file = ""
        # Told already, before the kernel's word of it was read.
        self._told: set[str] = set()
        self._changes: list[Change] = []
        # The cookie of the last rename of a draft; its other half comes next.
        self._draft = 0
        # Asks a call that runs in a thread to come to its end.
        self.stopped = False

    @property
    def descriptor(self) -> int:
        return self._inotify.descriptor

    def open(self) -> None:
        """Afterwards every change is seen. OSError: the root cannot be watched."""
        is_directory = stat.S_ISDIR(os.stat(self._root).st_mode)  # noqa: PTH116 (names may be any bytes)
        directory = self._root
        if not is_directory:
            directory, self._file = posixpath.split(self._root)
        self._inotify = Inotify()
        try:
            # First, so that a rename of one of them cannot slip through.
            for above in _between(self._workspace, directory):
                with suppress(OSError):  # not for us to read
                    self._above.add(self._inotify.add(above, _GONE | inotify.ONLY_DIRECTORY))
            self._watch(directory)
            if self._recursive and is_directory:
                self._look_through(directory, tell=False)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._places.give(len(self._paths))
        self._paths.clear()
        self._inotify.close()

    def take(self) -> list[Change]:
        taken, self._changes = self._changes, []
        return taken

    def advance(self) -> None:
        """Sees what has changed. Also what came before an error is there to be taken."""
        while not self.stopped and len(self._changes) < _MOST_PER_TURN:
            if not (batch := self._inotify.read()):
                self._told.clear()
                break
            left: dict[int, str] = {}
            self._apply(batch, left)
            if left and select.select([self.descriptor], [], [], _OTHER_HALF_MS / 1000)[0]:
                self._apply(self._inotify.read(), left)
            for path in left.values():
                self._forget(path)

    def _apply(self, batch: list[Raw], left: dict[int, str]) -> None:
        """`left`: the directories whose new place is not known yet, by the cookie of their rename."""
        for raw in batch:
            if raw.mask & inotify.OVERFLOW:
                raise LostError("there was more than the kernel's queue holds (fs.inotify.max_queued_events)")
            if raw.watch in self._above:
                self._end_with_parent(raw)
            elif (directory := self._paths.get(raw.watch)) is None:
                continue  # of a directory that has left
            elif raw.mask & inotify.IGNORED:
                self._drop(raw.watch)
            elif raw.mask & (_GONE | inotify.UNMOUNT):
                self._end_with_root(raw)
            elif raw.name.startswith(PREFIX):
                # A draft of the runtime's own: nobody need know, but what it replaces is changed by that.
                self._draft = raw.cookie
            elif not self._file or raw.name == self._file:
                self._one(raw, directory, left)

    def _one(self, raw: Raw, directory: str, left: dict[int, str]) -> None:
        path = posixpath.join(directory, raw.name) if raw.name else directory
        if not raw.name and path != self._root:
            return  # of a directory about itself: the one that it is in says the same
        is_directory = bool(raw.mask & inotify.IS_DIRECTORY)
        kind = _kind(raw.mask)
        if raw.cookie and raw.cookie == self._draft:
            kind = "create" if is_directory else "modify"
        if kind != "create" or path not in self._told:
            self._tell(Change(kind, path, is_directory))
        self._told.discard(path)
        if is_directory and self._recursive and raw.name:
            self._follow(kind, path, raw.cookie, left)

    def _follow(self, kind: Kind, path: str, cookie: int, left: dict[int, str]) -> None:
        """What a change of a directory means for the watches."""
        if kind in ("create", "move_to"):
            for other in [other for other, gone in left.items() if gone == path and other != cookie]:
                # Another directory is in its place, and would be forgotten for it.
                del left[other]
                self._forget(path)
        if kind == "move_from":
            left[cookie] = path
        elif kind == "move_to":
            old = left.pop(cookie, None)
            if old is not None and old in self._watches:
                self._rename(old, path)
                self._take_in(path, tell=False)
            else:
                self._take_in(path, tell=True)
        elif kind == "create" and path not in self._watches:
            self._take_in(path, tell=True)
        elif kind == "delete":
            # The kernel's own word of it may come after that of another directory in its place.
            self._forget(path)

    def _tell(self, change: Change) -> None:
        if change.kind in self._kinds and self._filter.wants(change.path):
            self._changes.append(change)

    def _take_in(self, path: str, *, tell: bool) -> None:
        if self._filter.excludes(path):
            self._forget(path)
        elif self._try_to_watch(path):
            self._look_through(path, tell=tell)

    def _look_through(self, top: str, *, tell: bool) -> None:
        """Watches everything below a directory that is watched, and tells of what is there."""
        waiting = [top]
        while waiting and not self.stopped:
            for path, is_directory in _entries(waiting.pop()):
                if tell:
                    if len(self._told) >= _MOST_FOUND:
                        raise LostError(f"more than {_MOST_FOUND} files came in new directories")
                    self._told.add(path)
                    self._tell(Change("create", path, is_directory))
                if is_directory and not self._filter.excludes(path) and self._try_to_watch(path):
                    waiting.append(path)

    def _try_to_watch(self, path: str) -> bool:
        try:
            self._watch(path)
        except OSError:
            # It is gone again, or not for us to read.
            return False
        return True

    def _watch(self, path: str) -> None:
        # Only what was asked for may be a link; a link further down could lead anywhere, and back.
        no_link = 0 if path == self._root or self._file else inotify.DO_NOT_FOLLOW
        watch = self._inotify.add(path, self._mask | no_link)
        if (old := self._paths.get(watch)) is None:
            try:
                self._places.take()
            except LimitError:
                self._inotify.remove(watch)
                raise
        elif self._watches.get(old) == watch:
            del self._watches[old]  # it was renamed, and the kernel's word of that is still to come
        self._paths[watch] = path
        self._watches[path] = watch

    def _rename(self, old: str, new: str) -> None:
        for path, watch in self._below(old):
            del self._watches[path]
            self._paths[watch] = new + path[len(old) :]
            self._watches[self._paths[watch]] = watch

    def _forget(self, top: str) -> None:
        for _, watch in self._below(top):
            self._inotify.remove(watch)
            self._drop(watch)

    def _drop(self, watch: int) -> None:
        path = self._paths.pop(watch)
        if self._watches.get(path) == watch:
            del self._watches[path]
        self._places.give(1)

    def _below(self, top: str) -> list[tuple[str, int]]:
        if top not in self._watches:
            return []
        return [(path, watch) for path, watch in self._watches.items() if f"{path}/".startswith(f"{top}/")]

    def _end_with_parent(self, raw: Raw) -> None:
        if raw.mask & inotify.MOVE_SELF:
            raise EndedError("a directory above what is watched was moved")

    def _end_with_root(self, raw: Raw) -> None:
        """A directory further down is told of by the one that it is in."""
        if self._paths[raw.watch] != (posixpath.dirname(self._root) if self._file else self._root):
            return
        if raw.mask & inotify.UNMOUNT:
            raise EndedError("the file system of what is watched was unmounted")
        verb = "moved" if raw.mask & inotify.MOVE_SELF else "deleted"
        raise EndedError(f"what is watched was {verb}")


def _kind(mask: int) -> Kind:
    return next(kind for bit, kind in KINDS.items() if mask & bit)


def _between(workspace: str, directory: str) -> Iterator[str]:
    """The directories that lead from the workspace to this one."""
    while len(directory) > len(workspace):
        directory = posixpath.dirname(directory)
        yield directory


def _entries(directory: str) -> Iterator[tuple[str, bool]]:
    """One by one: there may be millions."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                yield entry.path, entry.is_dir(follow_symlinks=False)
    except OSError:
        return
