"""What the state of a sandbox means for a request that wants in, and the only thing that the gateway ever
writes by itself: the annotation that asks for a wake, once for all requests that wait.
"""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Final

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, NotFound
from sandpod_crds.kube import Kube
from sandpod_crds.names import ANNOTATION_WAKE, Phase

from .metrics import Metrics
from .routes import Key, Route

log = logging.getLogger(__name__)

# A wake that had no effect for so long is asked for anew: whoever has to see it may have missed it.
AGAIN_SECONDS: Final = 10.0
# For so long the table may not have our own last wake yet.
SEEN_SECONDS: Final = 2.0
# Between two wakes of one sandbox, doubled with each. What answers there may be hostile, and must not make
# the gateway write as fast as it can.
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0
_REMEMBERED: Final = 4096
WRITE_SECONDS: Final = 5.0


class Step(Enum):
    GO = auto()
    # It sleeps, or is about to: ask for a wake, then wait.
    WAKE = auto()
    # It is on its way back.
    WAIT = auto()
    # It starts for the first time, which may take anything from a moment to for ever.
    WAIT_BRIEFLY = auto()
    REFUSE = auto()


def step_for(route: Route, *, leaving: bool, in_setup: bool = False) -> Step:
    """`leaving`: its pod has refused a request, or could not be reached, since we last heard of another.
    `in_setup`: the request is one that is answered before the sandbox is ready.
    """
    if route.deleting:
        return Step.REFUSE
    if (route.ready or (in_setup and route.setting_up)) and not leaving:
        return Step.GO
    if route.paused or route.phase == Phase.FAILED:
        return Step.REFUSE
    if (leaving and not route.setting_up) or route.phase in (Phase.ASLEEP, Phase.DRAINING):
        return Step.WAKE
    # One that was woken before starts because of a wake, whichever replica has asked for it.
    if route.wake_pending or (route.starting and route.wake):
        return Step.WAIT
    return Step.WAIT_BRIEFLY if route.starting else Step.REFUSE


def fresh_value(now: datetime | None = None) -> str:
    """A time that no wake has had before: clocks are set back, so chance fills the last three digits."""
    return f"{now or datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}{secrets.randbelow(1000):03}Z"


@dataclass(slots=True)
class _Asked:
    value: str
    at: float
    # Of the pod that the table called ready all the same
    pod_uid: str = ""
    times: int = 0
    writing: asyncio.Task[None] | None = None


class Waker:
    def __init__(self, *, kube: Kube, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._metrics = metrics
        self._clock = clock
        self._asked: dict[Key, _Asked] = {}
        # By the UID of a pod: the last wake that was asked for though it was ready.
        self._in_vain: OrderedDict[str, _Asked] = OrderedDict()

    def ask(self, key: Key, route: Route) -> float:
        """Sees to it that a wake is asked for, once. For as long as somebody waits: called whenever something
        has changed, and at the latest after as many seconds as it returns.
        """
        now = self._clock()
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = self._first(route, now=now)
        if asked.writing is not None and not asked.writing.done():
            return AGAIN_SECONDS
        due = asked.at + _patience(asked, route)
        if now < due:
            return due - now
        asked.value, asked.at = fresh_value(), now
        asked.pod_uid = route.pod_uid if route.ready else ""
        asked.times += 1
        asked.writing = asyncio.create_task(self._write(key, route.uid, asked))
        return AGAIN_SECONDS

    def forget(self, key: Key) -> None:
        """Nobody waits any more."""
        asked = self._asked.pop(key, None)
        if asked is None or asked.writing is None:
            return
        if not asked.writing.done():
            # Nobody knows whether it was written: the next one who waits asks anew.
            asked.writing.cancel()
        elif asked.pod_uid:
            self._in_vain[asked.pod_uid] = asked
            while len(self._in_vain) > _REMEMBERED:
                self._in_vain.popitem(last=False)

    def _first(self, route: Route, *, now: float) -> _Asked:
        """Whoever asks because a pod that is ready is slow will do so again and again: what the ones before
        had asked for counts.
        """
        if route.ready and (before := self._in_vain.pop(route.pod_uid, None)) is not None:
            return before
        # One that is pending already, by another replica or a person, will do.
        return _Asked(value=route.wake if route.wake_pending else "", at=now)

    async def _write(self, key: Key, uid: str, asked: _Asked) -> None:
        """Until it is written: the same value, so that an answer which got lost does no harm."""
        namespace, name = key
        # The UID: a sandbox that was made anew under this name is not the one that somebody waits for.
        metadata = {"uid": uid, "annotations": {ANNOTATION_WAKE: asked.value}}
        pause = FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._kube.patch(paths.sandboxes(namespace, name), {"metadata": metadata})
            except NotFound:
                return
            except (ApiError, TimeoutError) as error:
                self._metrics.count("wakes_failed_total")
                log.warning("asking for a wake of %s/%s: %s; trying again", namespace, name, error)
            else:
                self._metrics.count("wakes_requested_total")
                asked.at = self._clock()
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _patience(asked: _Asked, route: Route) -> float:
    """How long after the last wake the next one may be asked for."""
    if not asked.value:
        return 0.0
    if asked.value == route.wake_observed:
        if route.ready:
            # The operator has found its runtime awake, and it is only slow.
            return LONGEST_PAUSE
        # It has had its effect, and here it sleeps again.
        return min(FIRST_PAUSE * 2 ** (asked.times - 1), LONGEST_PAUSE)
    return AGAIN_SECONDS if route.wake_pending else SEEN_SECONDS
