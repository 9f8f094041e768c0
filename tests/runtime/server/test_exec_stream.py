"""The streamed, stateless command: `/api/execute/stream`."""

import asyncio
import base64
import hashlib
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.events import events, text_of
from tests.support.runtime import Runtime, running, soon

Json = dict[str, Any]


async def stream(http: aiohttp.ClientSession, command: str, **fields: Any) -> list[Json]:
    async with http.post("/api/execute/stream", json={"command": command, **fields}) as response:
        return [event async for event in events(response)]


async def test_start_comes_first_complete_last_and_output_between(http: aiohttp.ClientSession) -> None:
    found = await stream(http, "echo out; echo err >&2; exit 3")
    kinds = [event["type"] for event in found]
    assert kinds[0] == "start"
    assert kinds[-1] == "complete"
    assert sorted(kinds[1:-1]) == ["stderr", "stdout"]
    assert found[0]["command"] == "echo out; echo err >&2; exit 3"
    assert isinstance(found[0]["pid"], int)
    assert found[-1]["exitCode"] == 3
    assert (text_of(found, "stdout"), text_of(found, "stderr")) == ("out\n", "err\n")


async def test_the_headers_are_those_of_the_protocol(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/execute/stream", json={"command": "true"}) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["Connection"] == "keep-alive"
        await response.read()


async def test_an_unknown_program_completes_with_127_and_says_so(http: aiohttp.ClientSession) -> None:
    found = await stream(http, "no-such-program")
    assert found[-1]["exitCode"] == 127
    assert "no-such-program" in text_of(found, "stderr")


async def test_output_arrives_when_it_is_printed(http: aiohttp.ClientSession) -> None:
    body = {"command": "for i in 1 2 3; do printf $i; sleep 0.5; done"}
    async with http.post("/api/execute/stream", json=body) as response:
        arrived = [time.monotonic() async for event in events(response) if event["type"] == "stdout"]
    assert len(arrived) == 3
    assert all(later - earlier > 0.3 for earlier, later in pairwise(arrived))


async def test_a_character_cut_by_two_writes_survives(http: aiohttp.ClientSession) -> None:
    found = await stream(http, r"printf 'caf\xc3'; sleep 0.2; printf '\xa9 \xe2\x82'")
    assert text_of(found, "stdout") == "café \ufffd"


async def test_bytes_travel_as_base64_when_asked_for(http: aiohttp.ClientSession) -> None:
    data = bytes(range(256))
    found = await stream(
        http,
        "cat; cat /dev/null >&2",
        stdin=base64.b64encode(data).decode(),
        stdinEncoding="base64",
        outputEncoding="base64",
    )
    pieces = [event["data"] for event in found if event["type"] == "stdout"]
    assert b"".join(base64.b64decode(piece, validate=True) for piece in pieces) == data


async def test_a_timeout_is_honoured(http: aiohttp.ClientSession) -> None:
    begun = time.monotonic()
    found = await stream(http, "echo before; sleep 30", timeoutMs=100)
    assert time.monotonic() - begun < 3
    assert text_of(found, "stdout") == "before\n"
    assert text_of(found, "stderr") == "Command timed out after 100ms\n"
    assert found[-2]["type"] == "stderr"
    assert (found[-1]["type"], found[-1]["exitCode"]) == ("complete", 124)


async def test_the_disable_token_means_no_session(http: aiohttp.ClientSession) -> None:
    found = await stream(http, "echo yes", sessionId="__DISABLE_SESSION__")
    assert "sessionId" not in found[0]
    assert text_of(found, "stdout") == "yes\n"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "INVALID_COMMAND"),
        ({"command": " "}, 400, "INVALID_COMMAND"),
        ({"command": "true", "cwd": "/no/such/place"}, 500, "STREAM_START_ERROR"),
        ({"command": "true", "sessionId": " "}, 400, "VALIDATION_FAILED"),
        ({"command": "true", "maxOutputBytes": 5}, 400, "VALIDATION_FAILED"),
    ],
)
async def test_what_fails_before_the_stream_is_a_plain_error(
    http: aiohttp.ClientSession, body: Json, status: int, code: str
) -> None:
    async with http.post("/api/execute/stream", json=body) as response:
        found = await response.json()
        assert (response.status, found["code"]) == (status, code)


async def test_a_stream_is_never_cut(http: aiohttp.ClientSession) -> None:
    size = 80_000_000
    digest, received = hashlib.sha256(), 0
    body = {"command": f"head -c {size} /dev/zero", "outputEncoding": "base64"}
    async with http.post("/api/execute/stream", json=body) as response:
        async for event in events(response):
            if event["type"] == "stdout":
                data = base64.b64decode(event["data"])
                digest.update(data)
                received += len(data)
    assert received == size
    assert digest.digest() == hashlib.sha256(bytes(size)).digest()


async def open_stream(runtime: Runtime, body: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A stream that nobody reads until somebody does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port, limit=4096)
    head = f"POST /api/execute/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    return reader, writer


def written_by(pattern: str) -> int:
    """How many bytes the process with this in its command line has written so far."""
    pids = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=True).stdout.split()
    return int(Path(f"/proc/{pids[-1]}/io").read_text().split("wchar: ")[1].split()[0])


async def settled(measure: Callable[[], int]) -> int:
    """A figure that has stopped changing."""
    previous = -1
    while (current := measure()) != previous or current == 0:
        previous = current
        await asyncio.sleep(0.3)
    return current


async def test_a_slow_reader_stops_the_command_and_not_the_memory(runtime: Runtime) -> None:
    before = runtime.memory()
    reader, writer = await open_stream(
        runtime, '{"command":"exec head -c 61234567 /dev/zero","outputEncoding":"base64"}'
    )
    written = await settled(lambda: written_by("head -c 6123456[7]"))
    assert written < 20_000_000
    assert runtime.memory() - before <= 8
    received, end = 0, b""
    while b'"complete"' not in end:
        data = await asyncio.wait_for(reader.read(1 << 20), 10)
        received += len(data)
        end = (end + data)[-200:]
    assert received > 61_234_567 * 4 / 3
    writer.close()


@pytest.mark.parametrize("default", [True, False])
async def test_a_reader_that_leaves_does_not_stop_the_command(runtime: Runtime, default: bool) -> None:
    """Neither by ending it nor by leaving it to wait for somebody who reads its output."""
    mark = runtime.workspace / f"finished-{default}"
    choice = "" if default else ',"onDisconnect":"detach"'
    body = f'{{"command":"head -c 50000000 /dev/zero; touch {mark}"{choice}}}'
    _, writer = await open_stream(runtime, body)
    assert not mark.exists()
    writer.transport.abort()
    await soon(mark.exists, timeout=10)
    assert runtime.logged("the client hung up")[-1]["killed"] is False


async def test_a_reader_that_leaves_ends_the_command_when_it_asked_for_that(runtime: Runtime) -> None:
    body = '{"command":"sleep 531.0125 & setsid sleep 531.0126; true","onDisconnect":"kill"}'
    _, writer = await open_stream(runtime, body)
    await soon(lambda: running("sleep 531.0126"), timeout=5)
    writer.close()
    # The last one may leave its group in the moment of the SIGTERM: then SIGKILL ends it, after the grace.
    await soon(lambda: not running("sleep 531.012"), timeout=15)


async def test_a_timeout_reaches_a_command_whose_reader_has_left(runtime: Runtime) -> None:
    _, writer = await open_stream(runtime, '{"command":"sleep 531.0127","timeoutMs":300}')
    writer.close()
    await soon(lambda: not running("sleep 531.0127"), timeout=5)


async def test_an_http_1_0_client_gets_the_stream_and_its_end(runtime: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    body = b'{"command":"echo yes"}'
    writer.write(
        b"POST /api/execute/stream HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )
    answer = await asyncio.wait_for(reader.read(), 5)
    assert b"Connection: keep-alive" not in answer
    assert b'"data":"yes\\n"' in answer
    assert answer.rstrip().endswith(b"}")
    writer.close()


async def test_a_silent_stream_is_kept_alive_with_comments(runtime: Runtime) -> None:
    reader, writer = await open_stream(runtime, '{"command":"sleep 17"}')
    received = b""
    while b"complete" not in received:
        received += await asyncio.wait_for(reader.read(1024), 20)
    assert received.count(b": hb\n\n") == 1
    writer.close()


async def test_many_streams_at_once_do_not_mix(http: aiohttp.ClientSession) -> None:
    async def one(number: int) -> None:
        found = await stream(http, f"for i in 1 2 3 4 5; do echo {number}; sleep 0.02; done; exit {number}")
        assert text_of(found, "stdout") == f"{number}\n" * 5
        assert found[-1]["exitCode"] == number

    await asyncio.gather(*(one(number) for number in range(1, 41)))
