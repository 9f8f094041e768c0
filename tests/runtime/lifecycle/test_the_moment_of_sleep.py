"""Requests thrown at a sandbox in the very moment in which it falls asleep: each is done once and answered,
or it is refused and nothing was done. `SANDPOD_SLEEP_ROUNDS=300` throws more of them.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable

import aiohttp
import pytest

from tests.support.runtime import Runtime

Start = Callable[..., Runtime]

ROUNDS = int(os.environ.get("SANDPOD_SLEEP_ROUNDS", "30"))
# So many runtimes at a time: most of a round is waiting.
SIDE_BY_SIDE = 4
REQUESTS = 4
# Around the moment that is aimed at.
JITTER = 0.003
# The aim moves to and fro over the moment of the decision, wherever the machine's load has put it.
STEP = 0.004


async def attempt(http: aiohttp.ClientSession, command: str) -> str:
    """What became of it."""
    try:
        async with http.post("/api/execute", json={"command": command}) as response:
            body = await response.json()
    except aiohttp.ClientConnectionError:
        return "no connection"
    if response.status == 200:
        assert body["exitCode"] == 0, body
        return "done"
    assert (response.status, body["code"]) == (503, "CONTAINER_UNAVAILABLE"), body
    return "refused"


async def lease(http: aiohttp.ClientSession) -> str:
    try:
        async with http.post("/api/lifecycle/lease", json={"seconds": 0.05, "holder": "g"}) as response:
            body = await response.json()
    except aiohttp.ClientConnectionError:
        return "no connection"
    if response.status == 200:
        # What a granted lease promises: until it has run out nothing is decided.
        assert body["phase"] == "running"
        return "leased"
    assert (response.status, body["code"]) == (503, "CONTAINER_UNAVAILABLE"), body
    return "lease refused"


async def one_round(runtime: Runtime, *, aim: float, chance: random.Random) -> Counter[str]:
    sleep_after = chance.uniform(0.05, 0.2)
    loop = asyncio.get_running_loop()
    async with aiohttp.ClientSession(runtime.url, timeout=aiohttp.ClientTimeout(30)) as http:
        async with http.post("/api/lifecycle", json={"sleepAfterSeconds": sleep_after}) as response:
            assert response.status == 200
        moment = loop.time() + sleep_after + aim

        async def thrown(number: int) -> str:
            await asyncio.sleep(moment + chance.uniform(-JITTER, JITTER) - loop.time())
            if number == 0:
                return await lease(http)
            return await attempt(http, f"echo x >> effect-{number}")

        found = await asyncio.gather(*(thrown(number) for number in range(REQUESTS)))
    assert await asyncio.to_thread(runtime.process.wait, 60) == 0
    for number, result in enumerate(found):
        effect = runtime.workspace / f"effect-{number}"
        times = len(effect.read_text().splitlines()) if effect.exists() else 0
        assert times == (1 if result == "done" else 0), (number, result, times)
    assert runtime.failures() == []
    return Counter(found)


@pytest.mark.timeout(60 + 3 * ROUNDS)
async def test_in_the_moment_of_sleep_a_request_is_done_once_or_not_at_all(start: Start) -> None:
    chance = random.Random(5)
    places = asyncio.Semaphore(SIDE_BY_SIDE)
    total: Counter[str] = Counter()

    aim = 0.0

    async def run_one() -> None:
        nonlocal aim
        async with places:
            runtime = await asyncio.to_thread(start)
            found = await one_round(runtime, aim=aim, chance=chance)
            aim += STEP if found["done"] else -STEP
            total.update(found)
            await asyncio.to_thread(runtime.dispose)

    await asyncio.gather(*(run_one() for _ in range(ROUNDS)))
    assert sum(total.values()) == ROUNDS * REQUESTS
    # Or the moment was missed, and this has tested nothing.
    assert total["done"], total
    assert total["refused"] + total["no connection"], total
