"""Changes of the environment that outlive a sleep: written before they are made, made again at the start."""

import asyncio
import logging

import msgspec

from sandpod_runtime.disk import Disk, fault_of
from sandpod_runtime.environment import Environment, checked_variable
from sandpod_runtime.errors import Fault
from sandpod_runtime.state import StateDirectory, read_whole, write_whole

_FOLDER = "environment"
_FILE = "changes.json"
# JSON may need six bytes for one of a value.
_LARGEST = 16 << 20

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
        write_whole(f"{self._state.path(_FOLDER)}/{_FILE}", msgspec.json.encode(changes))

    def _read(self) -> dict[str, str | None]:
        if (folder := self._state.existing(_FOLDER)) is None:
            return {}
        try:
            return _decoder.decode(read_whole(f"{folder}/{_FILE}", largest=_LARGEST) or b"{}")
        except FileNotFoundError:
            return {}
