"""What a runtime does once it knows whom it is for: bring back what was saved, make the workspace ready,
start what was declared.
"""

from collections.abc import Awaitable, Callable

from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.lifecycle.setup import Setup
from sandpod_runtime.lifecycle.steps import Steps, all_within
from sandpod_runtime.models.processes import DeclaredProcess

_RESTORING_SECONDS = 20.0
_STARTING_SECONDS = 10.0

Start = Callable[[list[DeclaredProcess]], Awaitable[None]]


class Beginning:
    def __init__(self, *, life: Life, restore: Steps, setup: Setup, start: Start) -> None:
        self._life = life
        self._restore = restore
        self._setup = setup
        self._start = start

    async def run(self, *, steps: list[str], declared: list[DeclaredProcess]) -> None:
        """What fails is logged: a sandbox without one of its sessions is better than none. Does not wait for
        a setup, which may take as long as it likes.
        """
        self._life.restored = await all_within(_RESTORING_SECONDS, self._restore)
        self._life.begun = True

        async def start() -> None:
            await all_within(_STARTING_SECONDS, {"processes": lambda: self._start(declared)})

        if await self._setup.is_due(steps):
            self._setup.begin(start)
        else:
            await start()
