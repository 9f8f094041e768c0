"""What the operator remembers about a pool and can do without: after a restart it looks again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..observations import Refusal
from ..times import still_to_come
from .pod import Blueprint

# A pod that was asked for is expected for so long. Then it is looked for, and given up if it is not there.
EXPECTED_FOR = timedelta(seconds=10)

# What was made no longer ago than this and is missing again has been taken away by somebody.
LATELY = timedelta(seconds=60)


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

    # Pods that were made lately, that nobody has claimed and that we have not removed: until when the place
    # of one that is gone is kept. Who took it away would take the next one too.
    places: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def expect(self, name: str, *, now: datetime) -> None:
        self.expected[name] = now + EXPECTED_FOR
        self.started_at = now

    def made(self, name: str, *, now: datetime) -> None:
        self.places[name] = now + LATELY

    def gone(self, *, there: Callable[[str], bool], now: datetime) -> list[datetime]:
        """Until when the places of those are kept that somebody has taken away."""
        self.places = {
            name: until
            for name, until in self.places.items()
            if still_to_come(until, now=now, within=LATELY) is not None
        }
        return [until for name, until in self.places.items() if not there(name)]

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
