"""Leases: how a request is never lost to a runtime that falls asleep just then.

A runtime decides by itself to sleep, at a moment when nothing is in flight and no lease is held. From then on
it refuses everything, and some hundred milliseconds later it has gone; what is sent to it then meets a 503, a
closed port, or a connection that ends without an answer. The first two say that nothing was done, and the
request goes to the next pod. The third says nothing: a command may have run. So whatever changes something
is sent only while a lease holds that the runtime has granted. The interleavings:

1. The decision falls before the lease arrives. It is refused, or its connection breaks: either way nothing of
   the request has left the gateway. The pod is marked as leaving, a wake is asked for, the next pod waited
   for. The wake is written after the decision, and the operator cannot have taken it for an older one: the
   runtime refuses the operator's lease too, so the wake stays pending and the pod's end is followed by a
   start.
2. The lease arrives before the decision. There will be none until the lease ends, unless somebody decrees it
   (a pause, a drain of the node). The request is written to an open connection with at least half of the
   lease's time left; as soon as its head is read it is in flight, which keeps the runtime awake by itself.
3. The same, and the request takes longer than half the lease to get there, or the end was decreed. Then the
   runtime refuses with CONTAINER_UNAVAILABLE before it looks at the request, and as long as no more than
   64 KiB of the body were taken from the client, it goes to the next pod. Only what is bigger, or meets a
   broken connection, becomes an answer that says which of the two it was.
4. The decision falls while the runtime reads the lease's body: what it answers then carries the phase
   `draining`, and counts as a refusal.

Who grants a lease has proved on the same connection to be the runtime of the pod that was meant, so that a
lease also says whose address this is: whoever connects to another port of it asks for one before.

What changes nothing (GET, HEAD, OPTIONS) needs no lease, because it may simply be sent again; so looking at a
sandbox keeps none awake.

A lease is as short as the shortest `sleepAfter`, so that no sandbox sleeps later for it: the request that
follows it counts from a later moment. For a busy sandbox it is renewed twice a second at most, however many
requests there are; all that come in one moment share one.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from .addresses import Address
from .errors import PodLeaving, Refusal
from .metrics import Metrics

# A runtime that takes longer to answer than half a lease is asked for twice as long, so many times.
ATTEMPTS: Final = 4
# Renewed when less than this part of it is left.
_MARGIN: Final = 0.5
_SIZE: Final = 4096
# By which runtimes tell the leases of several replicas apart
HOLDER: Final = f"gateway-{secrets.token_hex(8)}"


class Ask(Protocol):
    """Asks a pod's runtime for a lease of so many seconds; raises PodLeaving when it gives none."""

    async def __call__(self, *, pod_uid: str, address: Address, credential: str, seconds: float) -> None: ...


class Leases:
    def __init__(
        self, *, ask: Ask, seconds: float, metrics: Metrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._metrics = metrics
        self._clock = clock
        # By the pod's UID, until when a request may be sent there
        self._until: OrderedDict[str, float] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}

    def holds(self, pod_uid: str) -> bool:
        return self.left(pod_uid) > 0

    def left(self, pod_uid: str) -> float:
        """For how many seconds more a request may be sent there."""
        return max(self._until.get(pod_uid, 0.0) - self._clock(), 0.0)

    async def ensure(self, *, pod_uid: str, address: Address, credential: str, attempt: int = 0) -> None:
        """Returns when the runtime has granted a lease."""
        if self.holds(pod_uid):
            return
        task = self._asking.get(pod_uid)
        if task is None:
            work = self._renew(pod_uid, address, credential, self._seconds * 2**attempt)
            task = self._asking[pod_uid] = asyncio.create_task(work)
            task.add_done_callback(lambda done: self._asked(pod_uid, done))
        # Shielded: the one who asked first may hang up, the others still want the answer.
        await asyncio.shield(task)

    async def confirm(self, *, pod_uid: str, address: Address, credential: str) -> bool:
        """A lease that is asked for from now on, whatever is held: whether it is granted."""
        try:
            await self._renew(pod_uid, address, credential, self._seconds)
        except Refusal:
            return False
        return True

    async def _renew(self, pod_uid: str, address: Address, credential: str, seconds: float) -> None:
        # Counted from before it is asked for: the runtime's own count begins later and so ends later.
        begun = self._clock()
        try:
            await self._ask(pod_uid=pod_uid, address=address, credential=credential, seconds=seconds)
        except PodLeaving:
            self._metrics.count("leases_total", result="refused")
            raise
        self._metrics.count("leases_total", result="granted")
        self._until[pod_uid] = begun + seconds * _MARGIN
        self._until.move_to_end(pod_uid)
        while len(self._until) > _SIZE:
            self._until.popitem(last=False)

    def _asked(self, pod_uid: str, task: asyncio.Task[None]) -> None:
        del self._asking[pod_uid]
        if not task.cancelled():
            # Looked at, or asyncio complains about an error that nobody was left to hear.
            task.exception()
