"""What keeps a sandbox awake, and what does not."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.support.events import TIMESTAMP
from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, soon

Json = dict[str, Any]
Sleepy = Callable[..., Any]


@contextlib.asynccontextmanager
async def client(runtime: Runtime, **options: Any) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(runtime.url, **options) as http:
        yield http


async def ask(http: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> Json:
    async with http.request(method, path, json=body) as response:
        found: Json = await response.json()
        assert response.status == 200, found
        return found


async def execute(http: aiohttp.ClientSession, command: str) -> Json:
    return await ask(http, "POST", "/api/execute", {"command": command})


async def asleep(sleeper: Any) -> Json:
    return await asyncio.to_thread(sleeper.wait_for_sleep)


@pytest_asyncio.fixture
async def awake(sleepy: Sleepy) -> AsyncIterator[aiohttp.ClientSession]:
    """One that never sleeps by itself."""
    async with client(sleepy(sleep_after=None).runtime) as http:
        yield http


async def test_a_sandbox_in_which_nobody_works_sleeps_and_says_why(sleepy: Sleepy) -> None:
    said = await asleep(sleepy())
    assert said["reason"] == "idle"
    assert TIMESTAMP.match(said["lastActiveAt"])
    assert TIMESTAMP.match(said["endedAt"])
    assert said["lastActiveAt"] < said["endedAt"]
    assert said["sessions"] == []
    assert said["running"]["commands"] == 0


async def test_a_request_in_flight_keeps_it_awake_and_is_answered(sleepy: Sleepy) -> None:
    sleeper = sleepy()
    async with client(sleeper.runtime) as http:
        assert (await execute(http, "sleep 3; echo done"))["stdout"] == "done\n"
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_a_stream_in_flight_keeps_it_awake_to_its_end(sleepy: Sleepy) -> None:
    sleeper = sleepy()
    body = {"command": "sleep 3; echo done"}
    async with client(sleeper.runtime) as http, http.post("/api/execute/stream", json=body) as response:
        assert b'"complete"' in await response.read()
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_probes_and_looks_at_its_state_keep_nobody_awake(sleepy: Sleepy) -> None:
    sleeper = sleepy()
    paths = ["/", "/api/ping", "/api/version", "/api/lifecycle", "/metrics", "/api/lifecycle"]
    async with client(sleeper.runtime) as http:
        with contextlib.suppress(aiohttp.ClientError, AssertionError):
            for number in range(10_000):
                async with http.get(paths[number % len(paths)]) as response:
                    await response.read()
                    assert response.status == 200
                await asyncio.sleep(0.02)
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_a_connection_without_bytes_keeps_nobody_awake(sleepy: Sleepy) -> None:
    sleeper = sleepy()
    async with client(sleeper.runtime) as http:
        await execute(http, "true")
        assert (await asleep(sleeper))["reason"] == "idle"


async def test_a_quiet_process_in_the_background_keeps_nobody_awake(sleepy: Sleepy) -> None:
    sleeper = sleepy()
    async with client(sleeper.runtime) as http:
        await execute(http, "sleep 1234.5 >/dev/null 2>&1 &")
    assert sleeper.runtime.descendants()
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_a_process_that_works_keeps_it_awake_until_it_is_done(sleepy: Sleepy) -> None:
    sleeper = sleepy()
    async with client(sleeper.runtime) as http:
        await execute(http, "timeout 4 sh -c 'while :; do :; done' >/dev/null 2>&1 &")
        busy = 0
        while sleeper.runtime.descendants():
            found = await ask(http, "GET", "/api/lifecycle")
            if found["activity"].get("cpuCores", 0) > 0.05:
                assert "cpu" in found["awakeBecause"]
                busy += 1
            await asyncio.sleep(0.1)
        assert busy
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_a_lease_keeps_it_awake_until_it_is_given_back(sleepy: Sleepy) -> None:
    sleeper = sleepy()
    async with client(sleeper.runtime) as http:
        lease = {"seconds": 600, "holder": "gateway-1"}
        found = await ask(http, "POST", "/api/lifecycle/lease", lease)
        assert [each["holder"] for each in found["activity"]["leases"]] == ["gateway-1"]
        assert found["secondsLeft"] > 500
        await asyncio.sleep(2)
        found = await ask(http, "GET", "/api/lifecycle")
        assert found["awakeBecause"] == ["leases"]
        await ask(http, "POST", "/api/lifecycle/lease", lease | {"seconds": 0})
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_a_lease_has_bounds(awake: aiohttp.ClientSession) -> None:
    wrong: list[Json] = [
        {"seconds": -1}, {"seconds": 3601}, {"seconds": "long"}, {"holder": ""}, {"holder": "x" * 129}
    ]  # fmt: skip
    for lease in wrong:
        async with awake.post("/api/lifecycle/lease", json=lease) as response:
            assert response.status == 400
    for number in range(256):
        await ask(awake, "POST", "/api/lifecycle/lease", {"holder": f"holder-{number}"})
    async with awake.post("/api/lifecycle/lease", json={"holder": "one more"}) as response:
        body = await response.json()
    assert (response.status, body["code"]) == (409, "RESOURCE_BUSY")
    assert "256" in body["message"]


async def test_on_a_laptop_it_never_sleeps_unless_it_is_told_to(awake: aiohttp.ClientSession) -> None:
    found = await ask(awake, "GET", "/api/lifecycle")
    assert found["phase"] == "running"
    assert found["sleepAfterSeconds"] is None
    assert found["awakeBecause"] == ["noSleepAfter"]
    assert "secondsLeft" not in found
    assert "sleepsAt" not in found


async def test_when_it_will_sleep_can_be_seen(awake: aiohttp.ClientSession) -> None:
    found = await ask(awake, "POST", "/api/lifecycle", {"sleepAfterSeconds": 600})
    assert found["awakeBecause"] == ["requests", "recentActivity"]  # this one
    found = await ask(awake, "GET", "/api/lifecycle")
    assert found["awakeBecause"] == ["recentActivity"]
    assert 0 < found["secondsLeft"] <= 600
    assert found["sleepsAt"] > found["timestamp"] >= found["activity"]["lastActiveAt"]
    assert found["activity"]["inFlight"] == 0


async def test_settings_that_are_not_given_stay(awake: aiohttp.ClientSession) -> None:
    await ask(awake, "POST", "/api/lifecycle", {"sleepAfterSeconds": 600})
    found = await ask(awake, "POST", "/api/lifecycle", {"keepAlive": True})
    assert (found["sleepAfterSeconds"], found["keepAlive"]) == (600, True)
    assert "keepAlive" in found["awakeBecause"]
    found = await ask(awake, "POST", "/api/lifecycle", {"sleepAfterSeconds": None})
    assert (found["sleepAfterSeconds"], found["keepAlive"]) == (None, True)
    async with awake.post("/api/lifecycle", json={"sleepAfterSeconds": -1}) as response:
        assert response.status == 400


async def test_a_setting_that_comes_later_works_at_once(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=600)
    async with client(sleeper.runtime) as http:
        await ask(http, "POST", "/api/lifecycle", {"sleepAfterSeconds": 0.5})
    assert (await asleep(sleeper))["reason"] == "idle"


async def test_an_unbound_runtime_waits_and_a_bound_one_sleeps_as_the_bind_says(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None, insecure=False)
    async with client(sleeper.runtime) as http:
        body = BIND | {"lifecycle": {"sleepAfterSeconds": 0.5}}
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        async with http.post("/api/bind", json=body, headers=headers) as response:
            assert response.status == 200
    said = await asleep(sleeper)
    assert said["reason"] == "idle"
    assert CREDENTIAL not in str(said)


@pytest.mark.parametrize(
    "never", [{"keepAlive": True}, {"sleepAfterSeconds": 0}, {"sleepAfterSeconds": None}]
)
async def test_a_sandbox_that_shall_not_sleep_has_no_time_left(sleepy: Sleepy, never: Json) -> None:
    async with client(sleepy(sleep_after=600).runtime) as http:
        assert "secondsLeft" in await ask(http, "GET", "/api/lifecycle")
        await ask(http, "POST", "/api/lifecycle", never)
        assert "secondsLeft" not in await ask(http, "GET", "/api/lifecycle")


async def test_what_wakes_it_in_the_last_moment_is_answered_or_refused_and_never_half_done(
    start: Callable[..., Runtime],
) -> None:
    """A request about when it falls asleep: it is done and answered, or it is not done at all."""
    for round_ in range(8):
        runtime = start(arguments=["--sleep-after", "0.5"])
        done: list[str] = []

        async def attempt(number: int, runtime: Runtime = runtime, done: list[str] = done) -> None:
            await asyncio.sleep(0.4 + number * 0.01)
            name = f"file-{number}"
            with contextlib.suppress(aiohttp.ClientConnectionError):
                async with (
                    aiohttp.ClientSession(runtime.url) as http,
                    http.post("/api/execute", json={"command": f"touch {name}"}) as response,
                ):
                    body = await response.json()
                    if response.status == 200:
                        done.append(name)
                    else:
                        assert body["code"] == "CONTAINER_UNAVAILABLE"

        # Only one each time, for it would keep the runtime awake for the next one.
        await attempt(round_ * 3)
        assert sorted(path.name for path in runtime.workspace.iterdir()) == done
        await soon(lambda runtime=runtime: runtime.process.poll() == 0, timeout=30)
        assert sorted(path.name for path in runtime.workspace.iterdir()) == done
