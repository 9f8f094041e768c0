"""Nothing that a command starts survives its end by force, whatever it does; and the dead are buried."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.events import events
from tests.support.runtime import TERMINATED, Runtime, below, running, soon, unprivileged

Execute = Callable[..., Any]

# It leaves a file, without which a test could pass because nothing had got away yet.
KEEP = """#!/bin/sh
: > escaped
exec sleep 733.0125
"""

# Each starts something that sleeps for 733.0125 seconds, and goes far to keep it.
ESCAPES = {
    "a child": "./keep & wait",
    "three levels": "sh -c 'sh -c \"./keep; true\"; true'; true",
    "a session of its own": "setsid ./keep; true",
    "a double fork": "( (./keep &) & ); sleep 20",
    "a daemon": "setsid sh -c '(./keep >/dev/null 2>&1 </dev/null &)'; sleep 20",
    "a daemon with an empty environment": "env -i setsid sh -c '(./keep &) ; exit'; sleep 20",
    "a stopped process": "sh -c ': > escaped; kill -STOP $$; ./keep'; true",
    "a chain of short lives": "f() { : > escaped; f & }; f & sleep 733.0125",
}


@pytest.fixture
def escaped(runtime: Runtime) -> Iterator[Callable[[], bool]]:
    """Whether an escape has left its file."""
    keep = runtime.workspace / "keep"
    keep.write_text(KEEP)
    keep.chmod(0o755)
    mark = runtime.workspace / "escaped"
    mark.unlink(missing_ok=True)
    yield mark.exists
    mark.unlink(missing_ok=True)
    keep.unlink()


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
async def test_a_timeout_leaves_no_descendant_alive(
    execute: Execute, runtime: Runtime, escaped: Callable[[], bool], escape: str
) -> None:
    await run_out_of_time(execute, escape, escaped)
    assert runtime.descendants() == {}
    assert not running("sleep 733.0125")


async def run_out_of_time(execute: Execute, command: str, escaped: Callable[[], bool]) -> None:
    """Not before it has got away, for which a second may not do on a machine that is busy."""
    for seconds in (1, 4, 16):
        found = await execute(command, timeoutMs=seconds * 1000)
        assert found["exitCode"] == 124
        if escaped():
            break
    assert escaped()


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
async def test_a_client_that_hangs_up_leaves_no_descendant_alive(
    runtime: Runtime, escaped: Callable[[], bool], escape: str
) -> None:
    await hang_up(runtime, escape, escaped)
    await soon(lambda: runtime.descendants() == {} and not running("sleep 733.0125"), timeout=12)


async def hang_up(runtime: Runtime, command: str, escaped: Callable[[], bool]) -> None:
    """On a command that has got away."""
    async with aiohttp.ClientSession(runtime.url) as http:
        call = asyncio.create_task(http.post("/api/execute", json={"command": command}))
        await soon(escaped)
        assert runtime.descendants() != {}
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call


async def test_a_client_that_wants_its_buffered_command_to_go_on_may_hang_up(runtime: Runtime) -> None:
    mark = runtime.workspace / "went-on"
    body = {"command": f"sleep 0.6; echo much; touch {mark}", "onDisconnect": "detach"}
    async with aiohttp.ClientSession(runtime.url) as http:
        with contextlib.suppress(TimeoutError):
            await http.post("/api/execute", json=body, timeout=aiohttp.ClientTimeout(total=0.2))
    await soon(mark.exists, timeout=5)


async def test_who_ignores_sigterm_is_killed_after_five_seconds(execute: Execute) -> None:
    begun = time.monotonic()
    found = await execute("trap '' TERM; echo ignoring; while :; do sleep 0.1; done", timeoutMs=500)
    assert 5 <= time.monotonic() - begun < 9
    assert (found["exitCode"], found["stdout"]) == (124, "ignoring\n")


async def test_who_cleans_up_on_sigterm_has_time_to_and_is_heard(execute: Execute) -> None:
    found = await execute("trap 'sleep 0.2; echo cleaned; exit' TERM; sleep 9 & wait", timeoutMs=500)
    assert found["stdout"] == "cleaned\n"
    assert found["exitCode"] == 124


async def test_ending_one_command_leaves_the_others_alone(execute: Execute) -> None:
    other = asyncio.create_task(execute("setsid sleep 0.8; echo lived"))
    await execute("sleep 733.0126", timeoutMs=100)
    assert (await other)["stdout"] == "lived\n"


async def test_ending_a_command_leaves_those_of_another_runtime_alone(
    execute: Execute, start: Callable[..., Runtime]
) -> None:
    other = start()
    async with aiohttp.ClientSession(other.url) as http:
        await http.post("/api/execute", json={"command": "setsid sleep 734.0125 >/dev/null 2>&1 &"})
    await execute("sleep 733.0127", timeoutMs=100)
    assert running("sleep 734.0125")


def executing(http: aiohttp.ClientSession) -> Execute:
    """`/api/execute` of a runtime of a test's own."""

    async def execute(command: str, **fields: Any) -> dict[str, Any]:
        async with http.post("/api/execute", json={"command": command, **fields}) as response:
            return await response.json()

    return execute


async def test_where_limits_cannot_mark_processes_the_environment_does(start: Callable[..., Runtime]) -> None:
    if shutil.which("prlimit") is None:
        pytest.skip("util-linux has prlimit")
    runtime = start(prefix=["prlimit", "--rttime=1000000:1000000"])
    mark = runtime.workspace / "escaped"
    async with aiohttp.ClientSession(runtime.url) as http:
        command = f"setsid sh -c '(sleep 733.0128 &); : > {mark}'; sleep 20"
        await run_out_of_time(executing(http), command, mark.exists)
    assert runtime.descendants() == {}


async def test_orphans_are_reaped(execute: Execute, runtime: Runtime) -> None:
    await execute("for i in $(seq 20); do (sleep 0.1 &) ; done")

    def zombies() -> list[str]:
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    stat = (entry / "stat").read_text()
                    if stat.rpartition(") ")[2].split()[:2] == ["Z", str(runtime.pid)]:
                        found.append(stat)
        return found

    await soon(lambda: runtime.descendants() == {} and zombies() == [], timeout=5)


async def test_no_exit_code_is_lost_among_orphans(execute: Execute) -> None:
    async def one(number: int) -> None:
        found = await execute(f"for i in 1 2 3 4 5; do (sleep 0.0$i &); done; exit {number}")
        assert found["exitCode"] == number

    await asyncio.gather(*(one(number) for number in range(100)))


async def test_sigterm_ends_commands_answers_their_clients_and_exits_with_0(
    start: Callable[..., Runtime],
) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:

        async def streamed() -> list[dict[str, Any]]:
            async with http.post("/api/execute/stream", json={"command": "exec sleep 735.0125"}) as response:
                return [event async for event in events(response)]

        async def buffered() -> dict[str, Any]:
            body = {"command": "trap 'echo bye; exit 4' TERM; sleep 735.0126 & wait"}
            async with http.post("/api/execute", json=body) as response:
                return await response.json()

        await http.post("/api/execute", json={"command": "setsid sleep 735.0127 >/dev/null 2>&1 &"})
        running_calls = asyncio.gather(streamed(), buffered())
        await soon(lambda: len(runtime.descendants()) >= 4)
        begun = time.monotonic()
        runtime.process.send_signal(signal.SIGTERM)
        events_seen, reply = await running_calls
    assert runtime.process.wait(10) == TERMINATED
    assert time.monotonic() - begun < 3
    assert events_seen[-1] | {"timestamp": ""} == {"type": "complete", "exitCode": 143, "timestamp": ""}
    assert (reply["stdout"], reply["exitCode"]) == ("bye\n", 4)
    assert not running("sleep 735.012")
    assert runtime.failures() == []


async def test_sigterm_does_not_wait_long_for_who_ignores_it(start: Callable[..., Runtime]) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:
        body = {"command": "trap '' TERM; while :; do sleep 0.1; done"}
        call = asyncio.create_task(http.post("/api/execute", json=body))
        await soon(lambda: len(runtime.descendants()) >= 2)
        begun = time.monotonic()
        runtime.process.send_signal(signal.SIGTERM)
        assert (await (await call).json())["exitCode"] == 137
    assert runtime.process.wait(10) == TERMINATED
    assert time.monotonic() - begun < 5


async def test_an_idle_runtime_with_open_connections_stops_at_once(start: Callable[..., Runtime]) -> None:
    runtime = start()
    _, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    begun = time.monotonic()
    assert runtime.stop() == TERMINATED
    assert time.monotonic() - begun < 0.8
    writer.close()


def has_namespaces() -> bool:
    attempt = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    return os.geteuid() == 0 and subprocess.run(attempt, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_namespaces(), reason="needs to make a PID namespace")
async def test_as_pid_1_it_reaps_kills_and_stops_as_well(start: Callable[..., Runtime]) -> None:
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    runtime = start(prefix=[*unshare, *unprivileged()])
    inner = next(iter(below(runtime.pid)))
    mark = runtime.workspace / "escaped"
    async with aiohttp.ClientSession(runtime.url) as http:
        execute = executing(http)
        assert (await execute("ps -o comm= -p 1"))["stdout"].startswith("python")
        assert (await execute("(sleep 733.0129 &); (sleep 0.1 &); exit 5"))["exitCode"] == 5
        assert running("sleep 733.0129")
        command = f"setsid sh -c '(sleep 733.0130 &); : > {mark}'; sleep 20"
        await run_out_of_time(execute, command, mark.exists)
        assert not running("sleep 733.0130")
        # In a pod's own /proc there is little to look through: even this is caught.
        found = await execute("f() { setsid bash -c f & }; export -f f; f; sleep 733.0131", timeoutMs=300)
        assert found["exitCode"] == 124
        assert list(below(inner).values()) == ["sleep 733.0129"]
        assert (await execute("ps -eo state= | grep -c Z"))["stdout"] == "0\n"
        os.kill(inner, signal.SIGTERM)
        assert runtime.process.wait(10) == TERMINATED
    assert not running("sleep 733.0129")


async def test_each_process_gets_one_sigterm_and_not_two(
    runtime: Runtime, escaped: Callable[[], bool]
) -> None:
    """Many programs take the second for impatience and skip their clean-up."""
    trap = "trap 'echo asked >>asked; sleep 0.3; exit' TERM"
    # Short sleeps: what a shell has just forked may miss the signal, and its trap waits for that.
    inner = f"{trap}; : >escaped; while :; do sleep 0.05; done"
    await hang_up(runtime, f'{trap}; setsid sh -c "{inner}" & wait', escaped)
    await soon(lambda: runtime.descendants() == {}, timeout=12)

    asked = runtime.workspace / "asked"
    assert asked.read_text() == "asked\nasked\n"
    asked.unlink()


async def test_nobody_else_can_answer_on_the_port_while_the_runtime_stops(
    start: Callable[..., Runtime],
) -> None:
    """A command that bound the port then would be sent requests, and with them the credential."""
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:
        body = {"command": "trap '' TERM; while :; do sleep 0.1; done"}
        call = asyncio.create_task(http.post("/api/execute", json=body))
        await soon(lambda: len(runtime.descendants()) >= 2)
        runtime.process.send_signal(signal.SIGTERM)
        await soon(lambda: bool(runtime.logged("stopping")))
        async with (
            aiohttp.ClientSession(runtime.url) as stranger,
            stranger.post("/api/execute", json={"command": "true"}) as response,
        ):
            assert response.status == 503
            assert (await response.json())["code"] == "CONTAINER_UNAVAILABLE"
        assert (await (await call).json())["exitCode"] == 137
    assert runtime.process.wait(10) == TERMINATED
