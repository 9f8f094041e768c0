"""What the operator remembers about a pool and can do without: after a restart it looks again."""

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..objects import Json, owner_uid
from ..observations import Refusal
from ..times import still_to_come
from .pod import Blueprint
from .warm import WarmPod

# A pod that was asked for is expected for so long. Then it is looked for, and given up if it is not there.
EXPECTED_FOR = timedelta(seconds=10)

# What was made no longer ago than this and is missing again has been taken away by somebody.
LATELY = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Of a pod that was made lately. When somebody takes it away, its place is kept for as long: who did that
    would take the next one too.
    """

    # What the pod was made with, to be selected by its wall.
    network: str
    until: datetime


@dataclass(kw_only=True, slots=True)
class PoolMemory:
    # The names of pods whose creation has begun, and when to give each up.
    expected: dict[str, datetime] = field(default_factory=dict[str, datetime])
    # When the creation of the last one has begun.
    started_at: datetime | None = None
    # The API server's no, and to pods of which shape.
    refusal: Refusal | None = None
    refused_shape: str = ""
    status_written_at: datetime | None = None
    # The blueprint, and the version of the template that it was made from.
    blueprint: Blueprint | None = None
    blueprint_of: tuple[str, ...] = ()

    # Of pods that nobody has claimed.
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    pool_uid: str = ""

    def expect(self, name: str, *, now: datetime) -> None:
        self.expected[name] = now + EXPECTED_FOR
        self.started_at = now

    def made(self, name: str, *, network: str, now: datetime) -> None:
        self.places[name] = Place(network=network, until=now + LATELY)

    def removed(self, pod: WarmPod) -> None:
        """By us. Unless that is because somebody has changed whose it is, another may take its place."""
        place = self.places.get(pod.key.name)
        if place is not None and pod.facts.owner_uid is not None and pod.network == place.network:
            del self.places[pod.key.name]

    def kept_places(
        self, pool_uid: str, *, waiting: Set[str], at: Callable[[str], Json | None], now: datetime
    ) -> list[datetime]:
        """Until when the places of those are kept that somebody has taken away. `at` finds a pod by name."""
        if pool_uid != self.pool_uid:
            self.places, self.pool_uid = {}, pool_uid
        kept: list[datetime] = []
        # With hundreds of pods and dozens of claims a second, those that wait are not looked at each time.
        for name in self.places.keys() - waiting:
            pod, until = at(name), self.places[name].until
            over = still_to_come(until, now=now, within=LATELY) is None
            if over or _is_claimed(pod, pool_uid):
                del self.places[name]
            elif pod is None:
                kept.append(until)
        return kept

    def started_lately(self, *, now: datetime) -> bool:
        since = self.started_at
        return since is not None and still_to_come(since + LATELY, now=now, within=LATELY) is not None

    def settle(self, name: str) -> None:
        self.expected.pop(name, None)

    def overdue(self, *, now: datetime) -> list[str]:
        return [
            name
            for name, until in self.expected.items()
            if still_to_come(until, now=now, within=EXPECTED_FOR) is None
        ]


def _is_claimed(pod: Json | None, pool_uid: str) -> bool:
    return pod is not None and owner_uid(pod) not in (None, pool_uid)
