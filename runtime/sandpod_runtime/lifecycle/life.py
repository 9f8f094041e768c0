"""A runtime's phase: it runs until something ends it, then it drains. What ends it first is the reason."""

import asyncio
from typing import Literal

from sandpod_runtime.errors import Fault

Reason = Literal["idle", "requested", "terminated"]
Phase = Literal["running", "draining"]


class Life:
    def __init__(self) -> None:
        self._over = asyncio.Event()
        # Whether what was saved is back: a request that came before would find, or make, something else.
        self.begun = False
        # Whether all of it came back. If not, saving would throw away what is still there.
        self.restored = False
        self.reason: Reason | None = None
        # What whoever requested the end said about it.
        self.detail = ""

    @property
    def phase(self) -> Phase:
        return "running" if self.reason is None else "draining"

    @property
    def draining(self) -> bool:
        return self.reason is not None

    def refuse_when_over(self) -> None:
        if self.draining:
            raise Fault("CONTAINER_UNAVAILABLE", "the runtime is stopping; nothing was done")

    def end(self, reason: Reason, *, detail: str = "") -> None:
        """From this moment on no request is admitted."""
        if self.reason is None:
            self.reason, self.detail = reason, detail
            self._over.set()

    async def over(self) -> Reason:
        await self._over.wait()
        return self.reason or "terminated"
