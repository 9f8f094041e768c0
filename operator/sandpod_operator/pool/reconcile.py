"""Brings one pool at a time to where it should be: what is known -> decide -> execute, until nothing is left
to do.
"""

import time
from collections.abc import Callable
from datetime import datetime

from ..cluster import Cluster
from ..failures import take_up
from ..metrics import Metrics
from ..observations import Key
from ..settings import Installation
from ..store import Store
from ..workqueue import WorkQueue
from .decide import PoolLimits, PoolPlan, decide_pool
from .execute import PoolExecutor
from .look import look
from .memory import PoolMemory
from .names import fresh_name
from .pools import Pools

# One pass makes or removes; the next one looks at what has become of it and says so.
MOST_STEPS = 8
# Seconds between two looks at a pool whose pods have yet to be told whose they are.
WHILE_LENDING = 10.0


class PoolReconciler:
    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        queue: WorkQueue[Key],
        pools: Pools,
        installation: Installation,
        metrics: Metrics,
        now: Callable[[], datetime],
        name: Callable[[str], str] = fresh_name,
    ) -> None:
        self._store = store
        self._queue = queue
        self._pools = pools
        self._installation = installation
        self._passes = metrics.pool_passes
        self._now = now
        self._name = name
        self._executor = PoolExecutor(
            cluster=cluster, store=store, claims=pools.claims, lending=pools.lending, now=now
        )
        self._memories: dict[Key, PoolMemory] = {}

    async def work(self) -> None:
        """One worker; run several of them."""
        await self._queue.serve(self.attempt)

    async def attempt(self, key: Key) -> None:
        """Once, and again later if it fails, whatever the failure."""
        begun = time.perf_counter()
        self._passes.begun.add()
        try:
            settled = await self.reconcile(key)
        except Exception as error:
            take_up(error, what="pool", key=key, queue=self._queue, passes=self._passes)
        else:
            if settled:
                self._queue.forget(key)
            else:
                # While sandboxes claim its pods there is always something to do.
                self._queue.retry(key)
        finally:
            self._passes.seconds.observe(time.perf_counter() - begun)

    async def reconcile(self, key: Key) -> bool:
        """Whether nothing is left to do for now."""
        self._pools.lending.recall()
        for _ in range(MOST_STEPS):
            if await self._step(key) is None:
                return True
        return False

    async def _step(self, key: Key) -> PoolPlan | None:
        """None when nothing is left to do for now."""
        memory = self._memories.setdefault(key, PoolMemory())
        now = self._now()
        for name in memory.overdue(now=now):
            await self._executor.look_for(Key(key.namespace, name), memory=memory)
        situation = look(
            key,
            store=self._store,
            warm=self._pools.warm,
            claims=self._pools.claims,
            lending=self._pools.lending,
            memory=memory,
            installation=self._installation,
            now=now,
        )
        settings = self._installation.settings
        limits = PoolLimits(
            most_starting=settings.pools.most_starting, start_timeout=settings.start_timeout_seconds
        )
        plan = decide_pool(situation, now=now, limits=limits, name=lambda: self._name(key.name))
        if await self._executor.carry_out(plan, situation=situation, memory=memory):
            return plan
        if await self._pools.lending.tidy(key):
            # Nobody else may notice that a sandbox went before its pod was told.
            self._queue.add_after(key, WHILE_LENDING)
        if situation.pool is None:
            del self._memories[key]
            self._pools.warm.forget(key)
        if plan.look_again_at is not None:
            self._queue.add_after(key, max((plan.look_again_at - self._now()).total_seconds(), 0.001))
        return None
