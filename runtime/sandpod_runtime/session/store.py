"""Sessions' states in the state directory: one file each, written whole or not at all, and never trusted.

What runs in the sandbox can write there too. It gains nothing: a state is only ever read by the user's shell.
"""

import errno
import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from sandpod_runtime.errors import Fault
from sandpod_runtime.paths import shown
from sandpod_runtime.session.ids import named
from sandpod_runtime.session.session import NAME
from sandpod_runtime.state import StateDirectory, read_whole, write_whole

_FOLDER = "sessions"
_SUFFIX = ".json"
# A state of 8 MiB and an environment of 2 MiB, in base64.
_LARGEST = 16 << 20


class StoreError(Exception):
    """This is not a session's state; the message says why."""


class Saved(msgspec.Struct, rename="camel", kw_only=True):
    """Names and values are bytes, which JSON knows only as base64."""

    version: Literal[1] = 1
    id: str
    shell: str
    directory: bytes
    environ: list[bytes]
    script: bytes
    lost: list[str]
    timeout: float | None
    saved_at: str


_decoder = msgspec.json.Decoder(Saved)


class Store:
    """Everything here blocks."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    @property
    def persistent(self) -> bool:
        return self._state.persistent

    def write(self, saved: Saved) -> None:
        """Raises OSError."""
        write_whole(self._path(saved.id), msgspec.json.encode(saved))

    def keep_only(self, ids: Collection[str]) -> None:
        """Raises OSError."""
        wanted = {_name(each) for each in ids}
        for name in self._names():
            if name not in wanted:
                self._remove(name)

    def remove(self, session_id: str) -> None:
        """Raises OSError."""
        self._remove(_name(session_id))

    def holds(self, session_id: str) -> bool:
        folder = self._state.existing(_FOLDER)
        return folder is not None and Path(folder, _name(session_id)).exists()

    def read(self, session_id: str) -> Saved:
        """Raises OSError or StoreError."""
        return self._read(_name(session_id))

    def read_all(self, *, most: int) -> Iterator[Saved | str]:
        """The state in each file, or what is wrong with it. Raises OSError."""
        for count, name in enumerate(sorted(self._names())):
            if count >= most:
                yield f"there are more than {most} files; the others were not read"
                return
            try:
                yield self._read(name)
            except StoreError as error:
                yield f"{shown(name)}: {error}"
            except OSError as error:
                yield f"{shown(name)}: {error.strerror}"

    def _names(self) -> list[str]:
        folder = self._state.existing(_FOLDER)
        if folder is None:
            return []
        return [entry.name for entry in Path(folder).iterdir() if entry.name.endswith(_SUFFIX)]

    def _path(self, session_id: str) -> str:
        return f"{self._state.path(_FOLDER)}/{_name(session_id)}"

    def _remove(self, name: str) -> None:
        if (folder := self._state.existing(_FOLDER)) is not None:
            Path(folder, name).unlink(missing_ok=True)

    def _read(self, name: str) -> Saved:
        folder = self._state.existing(_FOLDER)
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, "not found", name)
        data = read_whole(f"{folder}/{name}", largest=_LARGEST)
        try:
            found = _decoder.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise StoreError(f"it holds no session: {error}") from error
        _check(found, name=name)
        return found


def _check(saved: Saved, *, name: str) -> None:
    try:
        is_named = named(saved.id) is not None
    except Fault:
        is_named = False
    if not is_named or _name(saved.id) != name:
        raise StoreError("its name does not fit the session's id")
    if b"\0" in saved.script or b"\0" in saved.directory or not saved.directory.startswith(b"/"):
        raise StoreError("its script or directory cannot be one")
    for entry in saved.environ:
        variable, equals, _ = entry.partition(b"=")
        if not equals or b"\0" in entry or not NAME.fullmatch(variable.decode("ascii", "replace")):
            raise StoreError("its environment holds what is no variable")
    if saved.timeout is not None and not 0 < saved.timeout < 2**53:
        raise StoreError("its timeout cannot be one")


def _name(session_id: str) -> str:
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest() + _SUFFIX
