"""Brings one sandbox at a time to where it should be: what is known -> decide -> execute, until nothing is
left to do.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime

from sandpod_crds.errors import ApiError, Conflict

from .decide import decide
from .execute import Executor
from .isolation import Enforcement
from .metrics import Metrics
from .observations import Key
from .pool.pools import Pools
from .settings import Installation
from .situation import look
from .store import Store
from .workqueue import WorkQueue

# More steps than any way through the lifecycle has. Beyond, two decisions undo each other, and the back-off
# keeps that from hurting the cluster.
MOST_STEPS = 12

log = logging.getLogger(__name__)


class TooManySteps(Exception):
    pass


class Reconciler:
    def __init__(
        self,
        *,
        store: Store,
        queue: WorkQueue[Key],
        executor: Executor,
        pools: Pools,
        installation: Installation,
        enforcement: Callable[[], Enforcement],
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._queue = queue
        self._executor = executor
        self._pools = pools
        self._installation = installation
        self._enforcement = enforcement
        self._metrics = metrics
        self._now = now

    async def work(self) -> None:
        """One worker; run several of them."""
        await self._queue.serve(self.attempt)

    async def attempt(self, key: Key) -> None:
        """Once, and again later if it fails, whatever the failure."""
        begun = time.perf_counter()
        try:
            await self.reconcile(key)
        except Exception as error:
            self._fail(key, error)
        else:
            self._queue.forget(key)
        finally:
            self._metrics.passes.observe(time.perf_counter() - begun)

    async def reconcile(self, key: Key) -> None:
        self._metrics.reconciles.add()
        for _ in range(MOST_STEPS):
            situation = look(self._store, key, pools=self._pools, enforcement=self._enforcement())
            if situation.sandbox is not None:
                self._metrics.progress.see(situation.sandbox, now=self._now())
            plan = decide(situation, now=self._now(), installation=self._installation)
            if not await self._executor.carry_out(plan, key=key, sandbox=situation.sandbox):
                if plan.look_again_at is not None:
                    delay = (plan.look_again_at - self._now()).total_seconds()
                    self._queue.add_after(key, max(delay, 0.001))
                return
        raise TooManySteps(f"{key} is not settled after {MOST_STEPS} steps")

    def _fail(self, key: Key, error: Exception) -> None:
        self._metrics.failures.add(reason=type(error).__name__)
        if isinstance(error, Conflict):
            # Somebody has changed the object meanwhile; the watch may bring the new version any moment.
            self._queue.retry(key)
        elif isinstance(error, ApiError):
            delay = self._queue.retry(key, at_least=error.retry_after or 0.0)
            log.warning("%s: %s; again in %.1f s", key, error, delay)
        else:
            delay = self._queue.retry(key)
            log.error("%s: again in %.1f s", key, delay, exc_info=error)
