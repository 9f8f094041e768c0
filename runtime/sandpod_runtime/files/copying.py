"""Copies and moves: into an existing directory or to a new name, links as links, complete or not at all."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable

from sandpod_runtime.files.draft import copy_attributes
from sandpod_runtime.files.opening import open_file
from sandpod_runtime.files.removing import remove
from sandpod_runtime.files.temporary import hidden_name, put_in_place

_AT_ONCE = 8 << 20
Check = Callable[[], None]


def destination_of(source: str, destination: str) -> str:
    """What `mv` and `cp` do: an existing directory is what it goes into."""
    if os.path.isdir(destination):
        return os.path.join(destination, os.path.basename(source.rstrip("/")))
    return destination.rstrip("/") or "/"


def move(source: str, destination: str, *, check: Check) -> str:
    """A rename; or where that cannot be, on another file system, a copy and a removal."""
    final = _prepared(source, destination)
    try:
        os.rename(source, final)
        _drop_other_name(source, final)
    except OSError as error:
        if error.errno != errno.EXDEV:
            # Two paths are involved: the source is what the client knows this by.
            raise OSError(error.errno, _reason(error), source) from error
        _place_copy(source, final, check=check)
        remove(source, check=check)
    return final


def _drop_other_name(source: str, final: str) -> None:
    """Of two names of one file: a rename of the one to the other does nothing, and says that it worked."""
    with contextlib.suppress(FileNotFoundError):
        is_one_file = os.path.samestat(os.lstat(source), os.lstat(final))
        if is_one_file and _entry(source) != _entry(final):
            os.unlink(source)


def _entry(path: str) -> tuple[str, str]:
    above, name = os.path.split(path.rstrip("/"))
    return os.path.realpath(above), name


def copy(source: str, destination: str, *, recursive: bool, check: Check) -> str:
    final = _prepared(source, destination)
    if os.path.isdir(source) and not os.path.islink(source):
        if not recursive:
            raise IsADirectoryError(errno.EISDIR, "this is a directory; copy it with recursive: true", source)
        if _is_within(final, source):
            raise OSError(errno.EINVAL, "a directory cannot be copied into itself", source)
    _place_copy(source, final, check=check)
    return final


def _prepared(source: str, destination: str) -> str:
    """The final name, after what could be said without touching anything was said."""
    found = os.lstat(source)
    final = destination_of(source, destination)
    above = os.path.dirname(final)
    os.stat(above)
    with contextlib.suppress(FileNotFoundError):
        there = os.lstat(final)
        if stat.S_ISDIR(there.st_mode) and not os.path.samestat(there, found):
            raise FileExistsError(errno.EEXIST, "there is a directory of that name already", final)
        if stat.S_ISDIR(found.st_mode) and not stat.S_ISDIR(there.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "a directory cannot take the place of a file", final)
    return final


def _reason(error: OSError) -> str:
    if error.errno == errno.EINVAL:
        return "a directory cannot be moved into itself"
    return error.strerror or os.strerror(error.errno or 0)


def _is_within(path: str, directory: str) -> bool:
    top = os.path.realpath(directory)
    above = os.path.realpath(os.path.dirname(path))
    return f"{above}/".startswith(f"{top.rstrip('/')}/")


def _place_copy(source: str, final: str, *, check: Check) -> None:
    """Under a hidden name first, beside what it will replace."""
    hidden = os.path.join(os.path.dirname(final), hidden_name())
    try:
        _copy_tree(source, hidden, check=check)
        try:
            put_in_place(hidden, final, overwrite=False)
        except OSError:
            # It is a directory, or there is something, or this file system knows no second names.
            put_in_place(hidden, final, overwrite=True)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(hidden, check=lambda: None)
        raise


def _copy_tree(source: str, target: str, *, check: Check) -> None:
    stack = [(source, target)]
    directories: list[tuple[str, str, os.stat_result]] = []
    while stack:
        check()
        old, new = stack.pop()
        found = os.lstat(old)
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(new, 0o700)
            directories.append((old, new, found))
            stack += [(os.path.join(old, name), os.path.join(new, name)) for name in os.listdir(old)]
            continue
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(old), new)
        elif stat.S_ISREG(found.st_mode):
            _copy_file(old, new, check=check)
        else:
            os.mknod(new, found.st_mode, found.st_rdev)
        _keep(old, new, found)
    # Not before: a directory may be one that cannot be written, and what is put into it changes its time.
    for old, new, found in reversed(directories):
        _keep(old, new, found)


def _copy_file(old: str, new: str, *, check: Check) -> None:
    source = open_file(old)
    try:
        target = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            done = 0
            while sent := os.sendfile(target, source, done, _AT_ONCE):
                check()
                done += sent
        finally:
            os.close(target)
    finally:
        os.close(source)


def _keep(old: str, new: str, found: os.stat_result) -> None:
    """Rights and times; the owner and extended attributes as far as it is allowed."""
    with contextlib.suppress(PermissionError):
        os.chown(new, found.st_uid, found.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(found.st_mode):
        copy_attributes(old, new)
        os.chmod(new, stat.S_IMODE(found.st_mode))
    os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)
