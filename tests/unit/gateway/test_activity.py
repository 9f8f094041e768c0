"""What keeps a sandbox awake, for how long, and what ends a stream."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from sandpod_gateway.activity import LONGEST_SILENCE, Activity
from sandpod_gateway.audit import Exchange
from sandpod_gateway.leases import Leases
from sandpod_gateway.proxy import Runtime

RUNTIME = Runtime(address=("10.0.0.1", 3000), pod_uid="pod", credential="secret")


class Counted:
    """Leases that end at once."""

    def __init__(self) -> None:
        self.asked = 0

    def holds(self, pod_uid: str) -> bool:
        return False

    async def ensure(self, **which: Any) -> None:
        self.asked += 1


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.leases = Counted()
        self.activity = Activity(leases=cast("Leases", self.leases), lease_seconds=1, clock=lambda: self.now)
        self.exchange = Exchange(door="web", method="GET", path="/", source="", traceparent="")
        self.cuts = 0

    def request(self, *, may_go_on: Callable[[], bool] = lambda: True) -> Any:
        return self.activity.of(RUNTIME, self.exchange, may_go_on=may_go_on, cut=self._cut)

    def _cut(self) -> None:
        self.cuts += 1

    async def look(self) -> int:
        """How often the sandbox was asked to stay awake since."""
        before = self.leases.asked
        self.activity.look()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return self.leases.asked - before


async def test_an_unanswered_request_keeps_awake_for_five_minutes_and_no_longer() -> None:
    world = World()
    with world.request():
        assert await world.look() == 1
        world.now += LONGEST_SILENCE - 1
        assert await world.look() == 1
        world.now += 1
        assert await world.look() == 0
    assert LONGEST_SILENCE == 300


async def test_a_stream_keeps_awake_only_while_bytes_flow() -> None:
    world = World()
    with world.request():
        world.exchange.status = 101
        assert await world.look() == 0
        world.exchange.moved += 1
        assert await world.look() == 1
        assert await world.look() == 0
    world.exchange.moved += 1
    assert await world.look() == 0


async def test_a_stream_is_cut_once_when_its_address_opens_nothing_any_more() -> None:
    world = World()
    opens = True
    with world.request(may_go_on=lambda: opens):
        await world.look()
        assert world.cuts == 0
        opens = False
        assert await world.look() == 0
        await world.look()
        assert world.cuts == 1
