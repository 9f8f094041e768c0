"""Changes of the environment that outlive a sleep: written before they are made, made again at the start."""

import asyncio
import logging
import os
from pathlib import Path

import msgspec

from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.environment import Environment, checked_variable
from sandpod_runtime.errors import Fault
from sandpod_runtime.state import StateDirectory

_FOLDER = "environment"
_FILE = "changes.json"
# JSON may need six bytes for one of a value.
_LARGEST = 16 << 20
# Whatever a program of the same user has put in the file's place.
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

logger = logging.getLogger(__name__)
_decoder = msgspec.json.Decoder(dict[str, str | None])


class EnvironmentStore:
    def __init__(self, *, environment: Environment, state: StateDirectory, disk: Disk) -> None:
        self._environment = environment
        self._state = state
        self._disk = disk
        self._lock = asyncio.Lock()

    async def change(self, changes: dict[str, str | None]) -> None:
        """Raises Fault, and then has changed nothing."""
        async with self._lock:
            self._environment.check_room(changes)
            if self._state.persistent:
                try:
                    await self._disk.run(self._write, self._environment.changes | changes)
                except OSError as error:
                    raise fault_of(error, path=_FILE, operation="environment.save") from error
            self._environment.change(changes)

    async def restore(self) -> None:
        """Never fails: without its changes a sandbox is better off than without its runtime."""
        if not self._state.persistent:
            return
        try:
            async with self._lock:
                changes = await self._disk.run(self._read)
                for name, value in changes.items():
                    checked_variable(name, value, field=name)
                self._environment.check_room(changes)
                if changes:
                    self._environment.change(changes)
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError, Fault) as error:
            logger.warning("the environment's changes could not be restored", extra={"reason": str(error)})

    def _write(self, changes: dict[str, str | None]) -> None:
        place = Path(self._state.path(_FOLDER))
        fresh = place / f"{_FILE}.new"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFELY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(changes))
            file.flush()
            os.fsync(descriptor)
        fresh.replace(place / _FILE)

    def _read(self) -> dict[str, str | None]:
        path = Path(self._state.path(_FOLDER), _FILE)
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | _SAFELY), "rb") as file:
                return _decoder.decode(file.read(_LARGEST) or b"{}")
        except FileNotFoundError:
            return {}
