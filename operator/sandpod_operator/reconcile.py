"""Brings one sandbox at a time to where it should be: what is known -> decide -> execute, until nothing is
left to do.
"""

import time
from collections.abc import Callable
from datetime import datetime

from .decide import decide
from .execute import Executor
from .failures import take_up
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
            take_up(error, what="sandbox", key=key, queue=self._queue, passes=self._metrics.sandbox_passes)
        else:
            self._queue.forget(key)
        finally:
            self._metrics.sandbox_passes.seconds.observe(time.perf_counter() - begun)

    async def reconcile(self, key: Key) -> None:
        self._metrics.sandbox_passes.begun.add()
        self._pools.lending.recall()
        for _ in range(MOST_STEPS):
            situation = look(
                self._store,
                key,
                pools=self._pools,
                system_namespace=self._installation.settings.system_namespace,
                enforcement=self._enforcement(),
            )
            if situation.sandbox is not None:
                self._metrics.progress.see(situation.sandbox, now=self._now())
            else:
                self._pools.forget_secrets(key)
            plan = decide(situation, now=self._now(), installation=self._installation)
            if not await self._executor.carry_out(plan, key=key, sandbox=situation.sandbox):
                if plan.look_again_at is not None:
                    delay = (plan.look_again_at - self._now()).total_seconds()
                    self._queue.add_after(key, max(delay, 0.001))
                return
        raise TooManySteps(f"{key} is not settled after {MOST_STEPS} steps")
