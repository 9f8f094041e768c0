"""Whether a program listens on a port yet: after a wake a dev server needs some seconds to come up, and a
request waits for it as it has waited for the sandbox.
"""

import asyncio
import contextlib
from collections import OrderedDict
from typing import Final

from .addresses import Address

# A small program listens some milliseconds after its start, and the sandbox is Ready before that. For one
# that takes seconds, a request waits half the longest pause too long.
FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.25
CONNECT_SECONDS: Final = 1.0
_SIZE: Final = 8192


class Listening:
    def __init__(self) -> None:
        # Ports that have answered, by their pod: whoever does not listen there any more has ended.
        self._seen: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._trying: dict[Address, asyncio.Task[bool]] = {}

    def saw(self, pod_uid: str, port: int) -> None:
        self._seen[pod_uid, port] = None
        self._seen.move_to_end((pod_uid, port))
        while len(self._seen) > _SIZE:
            self._seen.popitem(last=False)

    def has_been_seen(self, pod_uid: str, port: int) -> bool:
        return (pod_uid, port) in self._seen

    async def wait(self, address: Address, *, seconds: float) -> bool:
        """Until somebody listens there. One knocks for all who wait."""
        task = self._trying.get(address)
        if task is None:
            task = self._trying[address] = asyncio.create_task(_knock(address, seconds=seconds))
            task.add_done_callback(lambda _: self._trying.pop(address, None))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # Shielded: the one who came first may hang up, the others still wait.
                return await asyncio.shield(task)
        return False


async def _knock(address: Address, *, seconds: float) -> bool:
    pause = FIRST_PAUSE
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(CONNECT_SECONDS):
                        _, writer = await asyncio.open_connection(*address)
                    writer.close()
                    return True
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
    return False
