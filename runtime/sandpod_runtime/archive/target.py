"""The directory that an archive is unpacked into, and that nothing gets out of.

No path is ever given to the kernel: every directory is opened from the one above it, and never through a
link, so that what the archive brings, what lies in the target already, and what a process in the sandbox
swaps meanwhile can lead nowhere else. Each file is made under a name of its own and renamed: what is in its
place, a hard link or a symbolic one to somewhere else, is replaced and not written to.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress

from sandpod_runtime.archive.member import Member

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# While they are filled; what the archive says comes at the end, for it may forbid us to write.
_OURS = 0o700
_MODE = 0o777
MOST_DIRECTORIES = 200_000
# What makes the rest of the archive hopeless; anything else concerns one member.
_FATAL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE))


class SkippedError(Exception):
    """This member is left out; the message says why."""


class _Walk:
    """The directory that was asked for last, and those above it, open: members come in order."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._names: list[str] = []
        self._open: list[int] = []

    def at(self, names: list[str], *, create: bool) -> int:
        same = 0
        while same < min(len(names), len(self._names)) and names[same] == self._names[same]:
            same += 1
        self._leave(same)
        for name in names[same:]:
            self._open.append(_enter(name, above=self._here(), create=create))
            self._names.append(name)
        return self._here()

    def close(self) -> None:
        self._leave(0)

    def _here(self) -> int:
        return self._open[-1] if self._open else self._root

    def _leave(self, depth: int) -> None:
        while len(self._open) > depth:
            os.close(self._open.pop())
            self._names.pop()


class Target:
    def __init__(self, path: str, *, all_links: bool, owners: bool = False) -> None:
        """With `all_links` a link may lead outside (and still nothing is written through it); with `owners`
        files belong to whom the archive says.
        """
        self._root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._all_links = all_links
        self._owners = owners
        self._walk = _Walk(self._root)
        self._sources = _Walk(self._root)
        self._directories: dict[str, Member] = {}
        self._random = os.urandom(6).hex()

    def close(self) -> None:
        self._walk.close()
        self._sources.close()
        os.close(self._root)

    def directory(self, member: Member, names: list[str]) -> None:
        with _explained():
            self._walk.at(names, create=True)
        if len(self._directories) < MOST_DIRECTORIES:
            self._directories["/".join(names)] = member

    @contextmanager
    def file(self, member: Member, names: list[str]) -> Generator[int]:
        """An open file to write; it takes its place at the end, if that comes."""
        with _explained():
            parent = self._walk.at(names[:-1], create=True)
            descriptor = os.open(self._temporary, _NEW, 0o600, dir_fd=parent)
        placed = False
        try:
            yield descriptor
            with _explained():
                self._finish(descriptor, member)
                self._place(names[-1], parent=parent)
            placed = True
        finally:
            os.close(descriptor)
            if not placed:
                self._forget(parent)

    def symlink(self, member: Member, names: list[str]) -> None:
        if not self._all_links and not leads_inside(member.target, depth=len(names) - 1):
            raise SkippedError("a link that leads outside")
        with _explained():
            parent = self._walk.at(names[:-1], create=True)
            os.symlink(member.target, self._temporary, dir_fd=parent)
            try:
                times = (member.mtime_ns, member.mtime_ns)
                with suppress(OSError, OverflowError):
                    os.utime(self._temporary, ns=times, dir_fd=parent, follow_symlinks=False)
                if self._owners:
                    with suppress(OSError, OverflowError):
                        os.chown(
                            self._temporary, member.uid, member.gid, dir_fd=parent, follow_symlinks=False
                        )
                self._place(names[-1], parent=parent)
            finally:
                self._forget(parent)

    def hardlink(self, names: list[str], source: list[str]) -> None:
        if not source:
            raise SkippedError("a hard link to what is not a file")
        with _explained():
            try:
                above = self._sources.at(source[:-1], create=False)
                found = os.stat(source[-1], dir_fd=above, follow_symlinks=False)
            except (SkippedError, FileNotFoundError) as error:
                raise SkippedError("a hard link to what is not there") from error
            if not stat.S_ISREG(found.st_mode):
                raise SkippedError("a hard link to what is not a file")
            parent = self._walk.at(names[:-1], create=True)
            os.link(source[-1], self._temporary, src_dir_fd=above, dst_dir_fd=parent, follow_symlinks=False)
            try:
                self._place(names[-1], parent=parent)
            finally:
                # To rename a file to another name of its own does nothing, and leaves both.
                self._forget(parent)

    def finish(self) -> None:
        """Give the directories the modes and times that the archive says: the deepest first."""
        for path, member in sorted(self._directories.items(), reverse=True):
            with suppress(OSError, SkippedError):
                parent = self._walk.at(path.split("/")[:-1], create=False)
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = os.open(path.rpartition("/")[2], flags, dir_fd=parent)
                try:
                    self._finish(descriptor, member)
                finally:
                    os.close(descriptor)

    @property
    def _temporary(self) -> str:
        return f".sandpod-{self._random}"

    def _finish(self, descriptor: int, member: Member) -> None:
        if self._owners:
            with suppress(OSError, OverflowError):
                os.fchown(descriptor, member.uid, member.gid)
        # No setuid, setgid or sticky bit: an archive is not a way to get one.
        os.fchmod(descriptor, member.mode & _MODE)
        with suppress(OverflowError):  # a time that this machine does not know
            os.utime(descriptor, ns=(member.mtime_ns, member.mtime_ns))

    def _place(self, name: str, *, parent: int) -> None:
        os.rename(self._temporary, name, src_dir_fd=parent, dst_dir_fd=parent)

    def _forget(self, parent: int) -> None:
        with suppress(OSError):
            os.unlink(self._temporary, dir_fd=parent)


def leads_inside(target: str, *, depth: int) -> bool:
    """Whether a link that lies `depth` directories below the root stays below it.

    `..` is accepted at the beginning only: behind a name it means whatever that name is a link to.
    """
    if target.startswith("/"):
        return False
    up = 0
    names = [name for name in target.split("/") if name not in ("", ".")]
    while up < len(names) and names[up] == "..":
        up += 1
    return up <= depth and ".." not in names[up:]


def _enter(name: str, *, above: int, create: bool) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=above)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise SkippedError("a file or a link is where its directory should be") from error
        raise
    with suppress(FileExistsError):  # somebody else made one meanwhile: opened like any other
        os.mkdir(name, _OURS | 0o055, dir_fd=above)
    try:
        return os.open(name, _DIRECTORY, dir_fd=above)
    except NotADirectoryError as error:
        raise SkippedError("a file or a link is where its directory should be") from error


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FATAL:
            raise
        raise SkippedError(_reason(error)) from error
    except ValueError as error:  # NUL
        raise SkippedError("a name that the kernel does not take") from error


def _reason(error: OSError) -> str:
    if error.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
        return "a directory is in its place"
    return os.strerror(error.errno or 0)
