"""What will be a file's content once it is complete: until then nobody sees it, and the file stays as it was.

A draft becomes the file by a rename, with the old one's rights and owner. Where that cannot be (the file has
other names that would keep the old content, is a mount, belongs to somebody else, lies in a directory that
cannot be written), it is copied into the file.
"""

import contextlib
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Sequence

from sandpod_runtime.files.opening import is_null, open_file
from sandpod_runtime.files.temporary import Temporary, write_all

_MOST_LINKS = 40
_ELSEWHERE = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (an unnamed file of ours, that nobody can open)
# The builtin SHA-256 keeps Python's lock while it works: so long at a time that others are not kept waiting.
_HASHED_AT_ONCE = 65_536
_AT_ONCE = 1 << 30
_NO_RENAME = (errno.EPERM, errno.EACCES, errno.EBUSY, errno.EXDEV, errno.EROFS)


class Draft:
    """May be used by one thread after the other; `discard` may come while another one still writes."""

    def __init__(
        self, path: str, *, mode: int | None = None, create_only: bool = False, hashed: bool = False
    ) -> None:
        """Makes the directories above `path` that are missing."""
        self.size = 0
        self._path = path
        self._mode = mode
        self._overwrite = not create_only
        self._hash = hashlib.sha256() if hashed else None
        self._lock = threading.Lock()
        self._old = _existing(path)
        if self._old is not None and create_only:
            raise FileExistsError(errno.EEXIST, "this is there already", path)
        directory, self._name = os.path.split(_behind_links(path))
        if self._name in ("", ".", ".."):
            raise IsADirectoryError(errno.EISDIR, "this is a directory", path)
        if self._old is None:
            _make_directories(directory)
        # One of several names of a file: a rename would leave the others with the old content.
        self._in_place = self._old is not None and (
            self._old.st_nlink > 1 or is_null(self._old) or not _is_same(self._old, directory, self._name)
        )
        self._temporary: Temporary | None = self._make_temporary(directory)

    def _make_temporary(self, directory: str) -> Temporary:
        if not self._in_place:
            try:
                return Temporary(directory, private=self._old is not None)
            except OSError as error:
                if self._old is None or error.errno not in _NO_RENAME:
                    raise
                self._in_place = True
        for place in _ELSEWHERE:
            with contextlib.suppress(OSError):
                return Temporary(place, private=True)
        raise OSError(errno.EROFS, "it can only be written in place, and there is no directory for drafts")

    @property
    def sha256(self) -> str | None:
        return self._hash.hexdigest() if self._hash else None

    def write(self, parts: Sequence[bytes]) -> None:
        """All of it or, with an error, nothing."""
        with self._lock:
            temporary = self._present()
            try:
                written = write_all(temporary.file, parts)
            except OSError:
                os.ftruncate(temporary.file, self.size)
                os.lseek(temporary.file, self.size, os.SEEK_SET)
                raise
            self.size += written
            if self._hash:
                for part in map(memoryview, parts):
                    for start in range(0, len(part), _HASHED_AT_ONCE):
                        self._hash.update(part[start : start + _HASHED_AT_ONCE])

    def publish(self) -> None:
        with self._lock:
            temporary = self._present()
            if not self._in_place and self._inherit(temporary.file):
                try:
                    self._publish(temporary)
                    return
                except OSError as error:
                    if self._old is None or error.errno not in _NO_RENAME:
                        raise OSError(error.errno, error.strerror, self._path) from error
            self._copy_into_place(temporary.file)

    def _publish(self, temporary: Temporary) -> None:
        if self._old is None:
            # Watchers see a file being made, as nothing is renamed.
            try:
                temporary.publish(self._name, overwrite=False)
                return
            except OSError:
                # Somebody was quicker; or this file system knows no second names.
                if not self._overwrite:
                    raise
        temporary.publish(self._name, overwrite=True)

    def discard(self) -> None:
        """Also after `publish`: gives back what this holds."""
        with self._lock:
            if self._temporary is not None:
                self._temporary.close()
                self._temporary = None

    def _present(self) -> Temporary:
        if self._temporary is None:
            raise OSError(errno.ECANCELED, "this was given up", self._path)
        return self._temporary

    def _inherit(self, file: int) -> bool:
        """Gives the draft the rights and the owner of what it replaces; whether that worked."""
        if self._old is None:
            if self._mode is not None:
                os.fchmod(file, self._mode)
            return True
        now = os.fstat(file)
        if (now.st_uid, now.st_gid) != (self._old.st_uid, self._old.st_gid):
            try:
                os.fchown(file, self._old.st_uid, self._old.st_gid)
            except PermissionError:
                return False
        copy_attributes(self._path, file)
        os.fchmod(file, stat.S_IMODE(self._old.st_mode) if self._mode is None else self._mode)
        return True

    def _copy_into_place(self, source: int) -> None:
        target = open_file(self._path, os.O_WRONLY)
        try:
            if is_null(os.fstat(target)):
                return
            _reserve(target, self.size)
            copy_bytes(source, target, self.size)
            os.ftruncate(target, self.size)
            if self._mode is not None:
                os.fchmod(target, self._mode)
        finally:
            os.close(target)


def _reserve(target: int, size: int) -> None:
    """Room for all of it, before the old content is touched: half of the new would be neither."""
    before = os.fstat(target).st_size
    if not size:
        return
    try:
        os.posix_fallocate(target, 0, size)
    except OSError as error:
        # Other errors are a file system's that cannot do this.
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            os.ftruncate(target, before)
            raise


def copy_bytes(source: int, target: int, size: int) -> None:
    done = 0
    while done < size and (sent := os.sendfile(target, source, done, min(_AT_ONCE, size - done))):
        done += sent


def copy_attributes(source: str | int, target: str | int) -> None:
    """Extended ones, with the access lists, as far as it is allowed."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))


def _existing(path: str) -> os.stat_result | None:
    """What is there, if it may be written: a rename alone would ask for rights on the directory only."""
    try:
        file = open_file(path, os.O_WRONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ETXTBSY:
            raise
        return os.stat(path)  # a program that runs: it cannot be written, but replaced
    try:
        return os.fstat(file)
    finally:
        # Kept open it would keep a program from being started.
        os.close(file)


def _behind_links(path: str) -> str:
    """Only the last part is looked at: what is above it is the kernel's matter."""
    for _ in range(_MOST_LINKS):
        try:
            target = os.readlink(path)
        except OSError:
            return path
        path = os.path.join(os.path.dirname(path), target)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _is_same(old: os.stat_result, directory: str, name: str) -> bool:
    """False behind one of /proc's links, whose text is not where it leads to."""
    try:
        return os.path.samestat(old, os.lstat(os.path.join(directory, name)))
    except OSError:
        return False


def _make_directories(directory: str) -> None:
    try:
        os.makedirs(directory, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from error
