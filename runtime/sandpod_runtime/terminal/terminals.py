"""All terminals, and the bounds on them. One id is one terminal, however many ask for it at once."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from sandpod_runtime.activity import Activity
from sandpod_runtime.budget import Budget
from sandpod_runtime.disk import Disk
from sandpod_runtime.errors import Fault
from sandpod_runtime.limits import Slots
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.terminal import launch
from sandpod_runtime.terminal.launch import Launch
from sandpod_runtime.terminal.terminal import Key, Terminal
from sandpod_runtime.terminal.viewer import Farewell

# Asked when a terminal has to be made: what it starts.
Planned = Callable[[], Awaitable[Launch]]

LIMIT = 64
MOST_SOCKETS = 128
_GOING_AWAY = Farewell(code=1001, reason="the runtime is stopping")


class Terminals:
    def __init__(self, *, commands: Commands, disk: Disk, memory: Budget, activity: Activity) -> None:
        self._commands = commands
        self._disk = disk
        self._memory = memory
        self._activity = activity
        # With those that are being destroyed: they have processes still.
        self._slots = Slots("terminals", LIMIT)
        self._sockets = Slots("sockets on terminals", MOST_SOCKETS)
        self._living: dict[Key, Terminal] = {}
        self._pending: dict[Key, asyncio.Task[Terminal]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def find(self, key: Key) -> Terminal | None:
        return self._living.get(key)

    def all(self) -> list[Terminal]:
        return list(self._living.values())

    async def get_or_create(self, key: Key, planned: Planned) -> tuple[Terminal, bool]:
        """The terminal, and whether this call is the one that made it."""
        if terminal := self._living.get(key):
            return terminal, False
        pending = self._pending.get(key)
        if is_first := pending is None:
            # Before anything is awaited: who comes next waits for this one, and gets its failure as well.
            pending = asyncio.get_running_loop().create_task(self._create(key, planned))
            self._pending[key] = pending
            pending.add_done_callback(lambda done: self._settled(key, done))
        return await asyncio.shield(pending), is_first

    async def destroy(self, key: Key) -> None:
        """Also one that is still being made; nothing when there is none."""
        if pending := self._pending.get(key):
            with contextlib.suppress(Fault):
                await asyncio.shield(pending)
        if task := self.destroy_soon(key):
            await asyncio.shield(task)

    def destroy_soon(self, key: Key) -> "asyncio.Task[None] | None":
        """From now on the id is free."""
        terminal = self._living.pop(key, None)
        if terminal is None:
            return None
        task = asyncio.get_running_loop().create_task(terminal.destroy())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def shut_down(self) -> None:
        """Sockets are told that the runtime goes away, and shells are hung up on; what is left of them ends
        with all other commands.
        """
        for terminal in self.all():
            terminal.cut(_GOING_AWAY)
            terminal.hang_up()

    async def _create(self, key: Key, planned: Planned) -> Terminal:
        self._slots.take()
        try:
            wanted = await planned()
            terminal = Terminal(
                key,
                program=await self._disk.run(launch.program, wanted),
                size=wanted.size,
                commands=self._commands,
                memory=self._memory,
                activity=self._activity,
                sockets=self._sockets,
            )
        except BaseException:
            self._slots.give()
            raise
        self._living[key] = terminal
        if wanted.on_made is not None:
            wanted.on_made(terminal)
        terminal.ended.add_done_callback(lambda _: self._over(terminal))
        return terminal

    def _settled(self, key: Key, done: "asyncio.Task[Terminal]") -> None:
        del self._pending[key]
        if not done.cancelled():
            done.exception()  # those who waited may all have gone: it is nobody's then

    def _over(self, terminal: Terminal) -> None:
        self._slots.give()
        if self._living.get(terminal.key) is terminal:
            del self._living[terminal.key]
