"""How many warm pods a pool may keep where a SandboxPolicy limits those of its namespace. Pure.

What the specs ask for decides, and not what is there: it is the same whoever looks, and no two pools can take
the last place.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sandpod_crds.models import SandboxPolicy

from ..objects import Json, section, uid_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """What the strictest policy leaves for one pool."""

    policy: str
    # Of all pools of the namespace together
    most: int
    # What the pools before this one ask for.
    before: int

    @property
    def left(self) -> int:
        return max(0, self.most - self.before)


def share_of(
    pool: Json,
    *,
    pools: Iterable[Json],
    policies: Sequence[SandboxPolicy],
    waiting: Callable[[Json], int],
) -> Share | None:
    """None when nothing limits it. `pools` are those of its namespace; the oldest come first. One that is
    being deleted has what is `waiting` of its pods, and gets no more.
    """
    limits = [(each.spec.max_warm_pods, each.metadata.name) for each in policies]
    strictest = min(((most, name) for most, name in limits if most is not None), default=None)
    if strictest is None:
        return None
    most, name = strictest
    before = sum(
        waiting(each) if "deletionTimestamp" in each["metadata"] else _replicas(each)
        for each in pools
        if _age(each) < _age(pool)
    )
    return Share(policy=name, most=most, before=before)


def _age(pool: Json) -> tuple[str, str]:
    # The same second is the same age; then any order will do that does not change.
    return pool["metadata"]["creationTimestamp"], uid_of(pool)


def _replicas(pool: Json) -> int:
    return section(pool, "spec").get("replicas", 1)
