"""Requests thrown at a sandbox in the very moment it falls asleep: none is lost, none is done twice."""

import asyncio
import io
import json
import os
import random
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from tests.support.gateway_harness import Harness, proxy_path, until
from tests.support.gateway_operator import SmallOperator, small_operator

# Of each sandbox. A round takes some two seconds, most of them a runtime's start and end.
ROUNDS = int(os.environ.get("SANDPOD_RACE_ROUNDS", "20"))
SANDBOXES = 3
MEGABYTE = 1 << 20


def marks(workspace: Path) -> Counter[str]:
    """What the commands have left behind, by the number that each was given."""
    done = workspace / "done"
    return Counter(done.read_text().split() if done.exists() else [])


class Thrower:
    """Requests with a side effect that can be counted, each by its number."""

    def __init__(self, harness: Harness, *, name: str) -> None:
        self._harness = harness
        self._name = name
        self.thrown: list[str] = []
        self.failed: list[str] = []

    async def command(self, *, padding: int = 0) -> None:
        number = self._number()
        body = {"command": f"cat > /dev/null; echo {number} >> done", "stdin": "x" * padding}
        data = io.BytesIO(json.dumps(body).encode())
        answer = await self._harness.request("POST", proxy_path(self._name), data=data)
        if answer.status != 200 or answer.json["exitCode"] != 0:
            self.failed.append(f"{number}: {answer.status} {answer.body[:300]!r}")

    async def look(self) -> None:
        answer = await self._harness.request("GET", proxy_path(self._name, "/api/process/list"))
        if answer.status != 200:
            self.failed.append(f"look: {answer.status} {answer.body[:300]!r}")

    async def socket(self) -> None:
        """To a terminal that is not there, which only a runtime that has taken the request can know."""
        try:
            async with self._harness.websocket(
                proxy_path(self._name, "/ws/terminal?terminalId=none")
            ) as socket:
                message = await socket.receive()
        except aiohttp.ClientError as error:
            self.failed.append(f"socket: {error!r}")
        else:
            if message.type is not aiohttp.WSMsgType.TEXT or json.loads(message.data)["type"] != "error":
                self.failed.append(f"socket: {message}")

    def _number(self) -> str:
        self.thrown.append(str(len(self.thrown)))
        return self.thrown[-1]


async def throw(operator: SmallOperator, thrower: Thrower, dice: random.Random) -> None:
    """One round: from an answer until the sandbox falls asleep, and what is thrown then."""
    await thrower.command()
    # Before the decision; or after it: while the runtime tidies up, when it has gone, when that is known.
    await operator.falling_asleep(before=dice.choice((0.0, 0.02)))
    await asyncio.sleep(dice.choice((0, dice.uniform(0, 0.05), dice.uniform(0, 0.3))))
    throws = [
        thrower.command,
        lambda: thrower.command(padding=MEGABYTE),
        thrower.look,
        thrower.socket,
    ]
    await asyncio.gather(*(throw() for throw in dice.sample(throws, dice.randint(1, len(throws)))))


async def race(built: Harness, workspace: Path, *, number: int) -> SmallOperator:
    name = f"racer-{number}"
    dice = random.Random(number)
    thrower = Thrower(built, name=name)
    async with small_operator(built, name=name, network=f"10.0.{number}", workspace=workspace) as operator:
        await until(lambda: ("default", name) in built.api.objects)
        for _ in range(ROUNDS):
            await throw(operator, thrower, dice)
    assert thrower.failed == []
    assert marks(workspace) == Counter(thrower.thrown)
    return operator


@pytest.mark.timeout(1200)
async def test_no_request_is_lost_or_done_twice_when_it_meets_a_sandbox_falling_asleep(
    built: Harness, tmp_path: Path
) -> None:
    await built.start(wake_wait_seconds=60, ready_wait_seconds=30, lease_seconds=0.1)

    operators = await asyncio.gather(
        *(race(built, tmp_path / str(number), number=number) for number in range(SANDBOXES))
    )

    metrics = await built.metrics()
    print("\n".join(line for line in metrics.splitlines() if line[0] != "#" and "_bucket" not in line))
    print([(each.lives, each.asleep, each.refused) for each in operators])
    # There was something to be lost: they slept again and again, and were met on their way to it.
    assert sum(operator.lives for operator in operators) > SANDBOXES * ROUNDS / 5
    assert sum(operator.refused for operator in operators) > 0
