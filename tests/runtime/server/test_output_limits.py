"""Bounds: how much output a buffered call keeps, how many commands run, how much memory that takes."""

import asyncio
import base64
import io
import json
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime, running, soon

Execute = Callable[..., Any]


async def test_output_within_the_limit_is_whole_and_says_nothing_of_cuts(execute: Execute) -> None:
    found = await execute("seq 1 100", maxOutputBytes=292)
    assert found["stdout"].split() == [str(number) for number in range(1, 101)]
    assert "stdoutCut" not in found


async def test_output_beyond_the_limit_loses_its_middle_and_says_how_much(execute: Execute) -> None:
    whole = "".join(f"{number}\n" for number in range(1, 10_001))
    found = await execute("seq 1 10000; echo fine >&2", maxOutputBytes=1000)
    note = f"\n[{len(whole) - 1000} bytes of output were cut here]\n"
    assert found["stdout"] == whole[:500] + note + whole[-500:]
    assert found["stdoutCut"] == {"at": 500, "bytes": len(whole) - 1000}
    assert found["stderr"] == "fine\n"
    assert "stderrCut" not in found


async def test_a_cut_never_leaves_half_a_character(execute: Execute) -> None:
    for limit in range(40, 50):
        found = await execute("for i in $(seq 100); do printf €; done", maxOutputBytes=limit)
        assert "\ufffd" not in found["stdout"]
        assert found["stdout"].startswith("€")
        assert found["stdout"].endswith("€")


async def test_base64_output_is_cut_without_a_mark_and_the_reply_tells_where(execute: Execute) -> None:
    found = await execute("seq 1 10000", maxOutputBytes=1000, outputEncoding="base64")
    whole = "".join(f"{number}\n" for number in range(1, 10_001)).encode()
    assert base64.b64decode(found["stdout"], validate=True) == whole[:500] + whole[-500:]
    assert found["stdoutCut"] == {"at": 500, "bytes": len(whole) - 1000}


async def test_a_caller_may_want_no_output_at_all(execute: Execute) -> None:
    found = await execute("echo something; exit 3", maxOutputBytes=0)
    assert found["stdout"] == "\n[10 bytes of output were cut here]\n"
    assert found["exitCode"] == 3


@pytest.mark.parametrize("limit", [-1, 1.5, 2**31, "many"])
async def test_a_limit_that_is_none_is_refused(http: aiohttp.ClientSession, limit: Any) -> None:
    async with http.post("/api/execute", json={"command": "true", "maxOutputBytes": limit}) as response:
        found = await response.json()
        assert response.status == 400
    assert found["context"]["validationErrors"][0]["field"] == "maxOutputBytes"


async def test_the_note_of_a_timeout_survives_a_cut(execute: Execute) -> None:
    found = await execute("yes >&2", timeoutMs=300, maxOutputBytes=100)
    assert found["stderr"].endswith("y\nCommand timed out after 300ms")
    assert found["stderrCut"]["bytes"] > 0


async def test_64_mebibytes_are_kept_by_default_and_the_memory_comes_back(
    execute: Execute, runtime: Runtime
) -> None:
    before = runtime.memory()
    found = await execute("yes | head -c 100000000; echo end")
    text = found["stdout"]
    assert text.startswith("y\ny\n")
    assert text.endswith("y\nend\n")
    assert found["stdoutCut"] == {"at": 32 << 20, "bytes": 100_000_004 - (64 << 20)}
    assert len(text) == (64 << 20) + len(f"\n[{100_000_004 - (64 << 20)} bytes of output were cut here]\n")
    await soon(lambda: runtime.memory() - before <= 16, timeout=5)


async def test_large_output_is_valid_json_in_every_encoding(execute: Execute) -> None:
    script = r"for i in $(seq 30000); do printf 'caf\xc3\xa9 \"%s\"\t\x00\xff\n' $i; done"
    found = await execute(script)
    assert found["stdout"] == "".join(f'café "{number}"\t\0\ufffd\n' for number in range(1, 30_001))
    coded = await execute(script, outputEncoding="base64")
    assert base64.b64decode(coded["stdout"], validate=True).decode(errors="replace") == found["stdout"]


async def test_256_commands_run_and_the_next_is_told_the_limit(runtime: Runtime) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(runtime.url, connector=connector) as http:

        async def post(command: str) -> tuple[int, dict[str, Any]]:
            async with http.post("/api/execute", json={"command": command}) as response:
                return response.status, await response.json()

        waiting = [asyncio.create_task(post("exec sleep 632.0125")) for _ in range(256)]
        await soon(lambda: len(runtime.descendants()) == 256)
        status, found = await post("true")
        assert (status, found["code"]) == (409, "RESOURCE_BUSY")
        assert "256" in found["message"]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        # All clients have hung up: that ends their commands.
        await soon(lambda: not running("sleep 632.0125"), timeout=15)
        await soon(lambda: runtime.descendants() == {}, timeout=5)
        assert (await post("echo again"))[1]["stdout"] == "again\n"


# The runtime as it is, but with little memory to give away.
MODEST = """
import sys
from sandpod_runtime import budget
from sandpod_runtime.__main__ import main
budget.LARGEST = 8 << 20
sys.argv = ["sandpod-runtime", *sys.argv[sys.argv.index("sandpod_runtime") + 1 :]]
sys.exit(main())
"""


async def test_inputs_that_nobody_reads_count_until_their_commands_end(start: Callable[..., Runtime]) -> None:
    runtime = start(prefix=[sys.executable, "-I", "-c", MODEST])
    body = json.dumps({"command": "exec sleep 631.0135", "stdin": "x" * 1_000_000}).encode()

    async def started() -> int:
        """The client leaves as soon as it has the status, and the command goes on."""
        async with (
            aiohttp.ClientSession(runtime.url) as http,
            http.post("/api/execute/stream", data=io.BytesIO(body)) as response,
        ):
            if response.status == 409:
                assert (await response.json())["code"] == "RESOURCE_BUSY"
            else:
                await response.content.readline()
            return response.status

    async def left(count: int) -> None:
        # Only then is what remains of the body's own charge given back.
        await soon(lambda: len(runtime.logged("the client hung up")) == count)

    for count in range(1, 8):
        assert await started() == 200
        await left(count)
    assert await started() == 409
    assert len(runtime.descendants()) == 7
    runtime.end_descendants()
    await soon(lambda: len(runtime.logged("command ended")) == 7)
    assert await started() == 200
    await left(8)
    assert runtime.failures() == []
