"""The whole operator, kopf included, in a thread of this process: on an event loop of its own, because kopf
ends every task of its loop when it stops.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial

import uvloop
from sandpod_operator import watching
from sandpod_operator.app import App
from sandpod_operator.settings import Settings


class OperatorThread:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop: Callable[[], object] | None = None
        self._begun = threading.Event()
        # What it has died of
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="operator")

    def start(self) -> None:
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    async def stop(self) -> None:
        await asyncio.to_thread(self._begun.wait)
        if self._stop is not None:
            # It may have ended already, of itself.
            with contextlib.suppress(RuntimeError):
                self._stop()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(self._operate())
            except Exception as error:
                self.error = error

    async def _operate(self) -> None:
        app, loop = App(self._settings), asyncio.get_running_loop()
        self._stop = partial(loop.call_soon_threadsafe, app.broken.set)
        self._begun.set()
        await watching.run(app)
