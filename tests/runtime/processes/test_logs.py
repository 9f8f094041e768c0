"""The logs of processes: at once, by offset, and followed."""

import asyncio
import base64

import aiohttp
import pytest

from tests.support.events import text_of
from tests.support.processes import Processes
from tests.support.runtime import Runtime, soon

CAPACITY = 4 << 20


async def test_the_log_right_after_the_start_has_the_first_words(processes: Processes) -> None:
    for _ in range(20):
        process_id = (await processes.start("echo hi; echo ho >&2"))["processId"]
        assert (await processes.logs(process_id))["stdout"] == "hi\n"


async def test_logs_can_be_read_on_from_where_one_was(processes: Processes) -> None:
    process_id = (await processes.start("echo one; read -r; echo two; echo err >&2", stdin="open"))[
        "processId"
    ]
    await processes.wait(process_id, "log", text="one")
    first = await processes.logs(process_id, "?stdoutOffset=0")
    assert (first["stdout"], first["stdoutNext"], first["stdoutDropped"]) == ("one\n", 4, 0)
    await processes.request("POST", f"{process_id}/stdin", json={"data": "\n"})
    await processes.wait(process_id)
    query = f"?stdoutOffset={first['stdoutNext']}&stderrOffset={first['stderrNext']}"
    second = await processes.logs(process_id, query)
    assert (second["stdout"], second["stderr"], second["stdoutNext"]) == ("two\n", "err\n", 8)
    assert second["status"] == "completed"
    beyond = await processes.logs(process_id, "?stdoutOffset=999")
    assert (beyond["stdout"], beyond["stdoutNext"]) == ("", 8)


async def test_a_character_that_is_not_complete_waits_for_its_rest(processes: Processes) -> None:
    command = r"printf 'caf\xc3'; read -r; printf '\xa9'"
    process_id = (await processes.start(command, stdin="open"))["processId"]
    await processes.wait(process_id, "log", text="caf")
    first = await processes.logs(process_id, "?stdoutOffset=0")
    assert (first["stdout"], first["stdoutNext"]) == ("caf", 3)
    await processes.request("POST", f"{process_id}/stdin", json={"data": "\n"})
    await processes.wait(process_id)
    assert (await processes.logs(process_id, "?stdoutOffset=3"))["stdout"] == "é"


async def test_bytes_can_be_had_as_base64(processes: Processes) -> None:
    process_id = (await processes.start(r"printf '\xff\x00\xfe'"))["processId"]
    await processes.wait(process_id)
    found = await processes.logs(process_id, "?encoding=base64")
    assert (base64.b64decode(found["stdout"]), found["encoding"]) == (b"\xff\0\xfe", "base64")


@pytest.mark.parametrize("query", ["?stdoutOffset=-1", "?stderrOffset=x", "?encoding=latin1"])
async def test_a_query_that_makes_no_sense_is_refused(processes: Processes, query: str) -> None:
    await processes.start("true", processId="p")
    found = await processes.request("GET", f"p/logs{query}", status=400)
    assert found["code"] == "VALIDATION_FAILED"


async def test_a_log_keeps_the_end_and_counts_what_it_dropped(processes: Processes) -> None:
    process_id = (await processes.start("seq 1 1000000"))["processId"]
    await processes.wait(process_id)
    total = sum(len(f"{number}\n") for number in range(1, 1_000_001))
    found = await processes.logs(process_id)
    assert found["stdoutDropped"] == total - CAPACITY
    assert found["stdoutNext"] == total
    note, _, text = found["stdout"].partition("\n")
    assert note == f"[{total - CAPACITY} bytes of output were cut here]"
    assert len(text) == CAPACITY
    assert text.endswith("\n999999\n1000000\n")
    found = await processes.logs(process_id, "?stdoutOffset=100")
    assert found["stdoutDropped"] == total - CAPACITY - 100
    assert found["stdout"] == text


async def test_a_stream_of_a_finished_process_replays_and_ends(processes: Processes) -> None:
    process_id = (await processes.start("echo out; echo err >&2; exit 3"))["processId"]
    await processes.wait(process_id)
    found = await processes.followed(process_id)
    assert [event["type"] for event in found] == ["process_info", "stdout", "stderr", "exit"]
    assert {event["processId"] for event in found} == {process_id}
    assert (found[0]["status"], found[0]["command"]) == ("failed", "echo out; echo err >&2; exit 3")
    assert (found[1]["data"], found[2]["data"]) == ("out\n", "err\n")
    assert (found[3]["exitCode"], isinstance(found[3]["data"], str)) == (3, True)


async def test_every_reader_gets_everything_exactly_once(processes: Processes) -> None:
    command = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; sleep 0.3; echo last"
    process_id = (await processes.start(command))["processId"]
    expected = "".join(f"line {number}\n" for number in range(3000)) + "last\n"

    async def read(delay: float) -> str:
        await asyncio.sleep(delay)
        return text_of(await processes.followed(process_id), "stdout")

    found = await asyncio.gather(*(read(number * 0.02) for number in range(10)))
    assert all(each == expected for each in found)


async def test_a_replay_is_one_event_however_long(processes: Processes) -> None:
    process_id = (await processes.start("head -c 3000000 /dev/zero | tr '\\0' '\\376'"))["processId"]
    await processes.wait(process_id)
    found = await processes.followed(process_id)
    assert [event["type"] for event in found] == ["process_info", "stdout", "exit"]
    assert found[1]["data"] == "\ufffd" * 3_000_000


async def test_a_character_cut_by_two_writes_survives_a_stream(processes: Processes) -> None:
    process_id = (await processes.start(r"printf 'caf\xc3'; sleep 0.2; printf '\xa9 \xe2\x82'"))["processId"]
    assert text_of(await processes.followed(process_id), "stdout") == "café \ufffd"


async def test_a_slow_reader_holds_nobody_back_and_learns_what_it_missed(
    runtime: Runtime, processes: Processes
) -> None:
    command = "read -r; head -c 60000000 /dev/zero | tr '\\0' x; echo; echo end"
    process_id = (await processes.start(command, stdin="open"))["processId"]
    before = runtime.memory()
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port, limit=4096)
    writer.write(f"GET /api/process/{process_id}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    await processes.request("POST", f"{process_id}/stdin", json={"data": "\n", "end": True})
    await processes.wait(process_id, timeoutMs=20_000)
    assert runtime.memory() - before <= 16
    received = b""
    while b'"exit"' not in received[-2000:]:
        received += await asyncio.wait_for(reader.read(1 << 20), 10)
    writer.close()
    assert b'"type":"gap","processId":"%b","stream":"stdout","bytes":' % process_id.encode() in received
    assert b"end" in received[-4000:]


async def test_streams_are_bounded_and_freed_when_their_readers_leave(
    runtime: Runtime, processes: Processes
) -> None:
    process_id = (await processes.start("exec sleep 33.0125"))["processId"]
    request = f"GET /api/process/{process_id}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    writers: list[asyncio.StreamWriter] = []
    for _ in range(256):
        reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
        writer.write(request)
        assert b"200" in await asyncio.wait_for(reader.readline(), 5)
        writers.append(writer)
    found = await processes.request("GET", f"{process_id}/stream", status=409)
    assert "256 log streams" in found["message"]
    for writer in writers:
        writer.transport.abort()

    async with aiohttp.ClientSession(runtime.url) as http:
        for _ in range(100):
            async with http.get(f"/api/process/{process_id}/stream") as response:
                if response.status == 200:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError("the places of those who left are not free")


async def test_a_reader_that_leaves_leaves_the_process_alone(runtime: Runtime, processes: Processes) -> None:
    mark = runtime.workspace / "went-on"
    process_id = (await processes.start(f"echo on; sleep 0.5; touch {mark}"))["processId"]
    async for event in processes.stream(process_id):
        if event["type"] == "stdout":
            break
    await soon(mark.exists)
    mark.unlink()
