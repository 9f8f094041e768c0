"""What sandboxes meet of the pools: what theirs has for them, the claim, and the environment that comes with
the bind.
"""

from collections.abc import Callable
from datetime import datetime

from sandpod_crds.models import SandboxPool

from ..cluster import Cluster
from ..metrics import Metrics
from ..objects import Json, key_of
from ..observations import Key
from ..store import Store
from .claim import Offer, Order, Reading
from .claims import Claims, kind_of
from .environment import Environment, Reader
from .lending import Lending
from .warm import WarmPods


class Pools:
    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        metrics: Metrics,
        now: Callable[[], datetime],
        changed: Callable[[Key], None],
    ) -> None:
        self.warm = WarmPods(store)
        self.lending = Lending(cluster=cluster, store=store, now=now)
        self.claims = Claims(
            cluster=cluster,
            store=store,
            warm=self.warm,
            lending=self.lending,
            metrics=metrics,
            now=now,
            pool_changed=changed,
        )
        self._reader = Reader(cluster=cluster)
        self._now = now

    def offer(self, pool: Json, *, sandbox_uid: str, wanted: bool) -> Offer:
        """`wanted`: the sandbox has no pod."""
        model = SandboxPool.model_validate(pool)
        free = self.claims.free(model) if wanted else ()
        return Offer(
            pool=model,
            shape=model.status.template_hash,
            ready=frozenset(kind_of(pod) for pod in free),
            unsure=self.claims.unsure(sandbox_uid),
            refusal=self.claims.refusal(sandbox_uid),
            claimed_lately=len(self.claims.lately(key_of(pool))) if wanted else 0,
        )

    def environment(self, key: Key) -> Environment | None:
        return self._reader.get(key)

    async def claim(self, order: Order) -> None:
        await self.claims.claim(order)

    async def read(self, key: Key, reading: Reading) -> None:
        await self._reader.read(key, reading.spec, subject=reading.subject, now=self._now())

    def forget_secrets(self, key: Key) -> None:
        """The runtime has its environment, or the sandbox is gone."""
        self._reader.drop(key)
