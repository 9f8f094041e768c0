"""Processes: start, list, status, kill; what survives of them, and what does not."""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.events import TIMESTAMP, events
from tests.support.processes import Processes
from tests.support.runtime import Runtime, running, soon

Json = dict[str, Any]


async def test_a_start_answers_with_id_pid_and_command(processes: Processes) -> None:
    found = await processes.start("sleep 333.0125")
    assert re.fullmatch(r"proc_\d{13}_[0-9a-z]{6}", found["processId"])
    assert isinstance(found["pid"], int)
    assert (found["command"], found["success"]) == ("sleep 333.0125", True)
    shown = await processes.get(found["processId"])
    assert (shown["status"], shown["pid"]) == ("running", found["pid"])
    assert TIMESTAMP.match(shown["startTime"])
    assert "endTime" not in shown
    assert "exitCode" not in shown


async def test_an_id_of_the_callers_own_is_kept(processes: Processes) -> None:
    assert (await processes.start("sleep 333.0125", processId="my server ü"))["processId"] == "my server ü"
    assert (await processes.get("my%20server%20%C3%BC"))["id"] == "my server ü"


@pytest.mark.parametrize("process_id", ["", "a/b", ".", "..", "start", "list", "kill-all", "a\0b", "x" * 300])
async def test_an_id_that_cannot_stand_in_a_path_is_refused(processes: Processes, process_id: str) -> None:
    found = await processes.start("true", processId=process_id, status=400)
    assert found["code"] == "VALIDATION_FAILED"
    assert found["context"]["validationErrors"][0]["field"] == "processId"


@pytest.mark.parametrize("command", ["", "   ", None])
async def test_a_blank_command_is_refused(processes: Processes, command: str | None) -> None:
    found = await processes.request("POST", "start", json={"command": command}, status=400)
    assert found["code"] == "INVALID_COMMAND"


async def test_an_id_serves_one_living_process_at_a_time(processes: Processes) -> None:
    await processes.start("sleep 333.0125", processId="one")
    found = await processes.start("true", processId="one", status=500)
    assert (found["code"], found["context"]) == ("PROCESS_ERROR", {"processId": "one"})
    await processes.kill("one")
    await processes.start("echo again", processId="one")
    await processes.wait("one")
    assert (await processes.logs("one"))["stdout"] == "again\n"


@pytest.mark.parametrize(
    ("command", "status", "code"),
    [
        ("exit 0", "completed", 0),
        ("exit 1", "failed", 1),
        ("exit 137", "killed", 137),
        ("kill $$", "killed", 143),
    ],
)
async def test_the_status_follows_from_the_exit_code(
    processes: Processes, command: str, status: str, code: int
) -> None:
    process_id = (await processes.start(command))["processId"]
    await processes.wait(process_id)
    found = await processes.get(process_id)
    assert (found["status"], found["exitCode"]) == (status, code)
    assert TIMESTAMP.match(found["endTime"])


async def test_the_list_can_be_filtered_by_status(processes: Processes) -> None:
    lives = (await processes.start("sleep 333.0125"))["processId"]
    ended = (await processes.start("true"))["processId"]
    await processes.wait(ended)
    everything = {each["id"] for each in await processes.listed()}
    assert {lives, ended} <= everything
    only = [each["id"] for each in await processes.listed("?status=running")]
    assert only == [lives]
    assert ended in {each["id"] for each in await processes.listed("?status=completed")}
    found = await processes.request("GET", "list?status=great", status=400)
    assert found["code"] == "VALIDATION_FAILED"


async def test_what_is_not_there_is_not_found(processes: Processes) -> None:
    for method, path in (("GET", "no"), ("GET", "no/logs"), ("GET", "no/stream"), ("DELETE", "no")):
        found = await processes.request(method, path, status=404)
        assert (found["code"], found["context"]) == ("PROCESS_NOT_FOUND", {"processId": "no"})
        assert "not found" in found["message"]


async def test_a_kill_removes_the_whole_tree_before_it_answers(processes: Processes) -> None:
    command = "sh -c 'sh -c \"sleep 333.0131; true\"; true' & setsid sleep 333.0132 & wait"
    process_id = (await processes.start(command))["processId"]
    await soon(lambda: running("sleep 333.0131") and running("sleep 333.0132"))
    await processes.kill(process_id)
    assert not running("sleep 333.013")
    found = await processes.get(process_id)
    assert (found["status"], found["exitCode"]) == ("killed", 143)
    assert (await processes.followed(process_id))[-1]["exitCode"] == 143


async def test_who_ignores_sigterm_is_killed_after_the_grace(processes: Processes) -> None:
    process_id = (await processes.start("trap '' TERM; echo on; while :; do sleep 0.1; done"))["processId"]
    await processes.wait(process_id, "log", text="on")
    begun = time.monotonic()
    await processes.kill(process_id)
    assert time.monotonic() - begun > 4
    assert (await processes.get(process_id))["exitCode"] == 137


async def test_who_takes_sigterm_well_was_killed_all_the_same(processes: Processes) -> None:
    process_id = (
        await processes.start("trap 'echo bye; exit 0' TERM; echo on; while :; do sleep 0.01; done")
    )["processId"]
    await processes.wait(process_id, "log", text="on")
    await processes.kill(process_id)
    found = await processes.get(process_id)
    assert (found["status"], found["exitCode"]) == ("killed", 143)
    assert (await processes.logs(process_id))["stdout"] == "on\nbye\n"


async def test_what_has_ended_cannot_be_killed(processes: Processes) -> None:
    process_id = (await processes.start("true"))["processId"]
    await processes.wait(process_id)
    found = await processes.kill(process_id, status=404)
    assert (found["code"], found["context"]) == ("COMMAND_NOT_FOUND", {"command": process_id})


async def test_kill_all_counts_what_it_killed_and_does_it_at_once(processes: Processes) -> None:
    assert (await processes.request("DELETE", "kill-all"))["cleanedCount"] == 0
    for _ in range(5):
        found = await processes.start("trap '' TERM; echo on; while :; do sleep 0.1; done")
        await processes.wait(found["processId"], "log", text="on")
    begun = time.monotonic()
    assert (await processes.request("DELETE", "kill-all"))["cleanedCount"] == 5
    assert time.monotonic() - begun < 15
    assert await processes.listed("?status=running") == []


async def test_a_timeout_ends_the_tree_and_says_so(processes: Processes) -> None:
    process_id = (await processes.start("printf begun; sleep 333.0133 & wait", timeoutMs=200))["processId"]
    await processes.wait(process_id)
    found = await processes.get(process_id)
    assert (found["status"], found["exitCode"]) == ("failed", 124)
    logs = await processes.logs(process_id)
    assert (logs["stdout"], logs["stderr"]) == ("begun", "Command timed out after 200ms\n")
    assert not running("sleep 333.0133")


async def test_what_could_not_start_leaves_a_record_that_says_why(processes: Processes) -> None:
    found = await processes.start("true", cwd="/no/such/place", processId="lost", status=500)
    assert found["code"] == "STREAM_START_ERROR"
    record = await processes.get("lost")
    assert (record["status"], "endTime" in record, "pid" in record) == ("error", True, False)
    assert "/no/such/place" in (await processes.logs("lost"))["stderr"]


async def test_a_process_gets_its_environment_and_directory(processes: Processes, runtime: Runtime) -> None:
    process_id = (await processes.start("echo $A $PWD", env={"A": "b", "C": None}, cwd="/tmp"))["processId"]
    assert (await processes.logs(process_id))["stdout"] == "b /tmp\n"
    process_id = (await processes.start("pwd"))["processId"]
    assert (await processes.logs(process_id))["stdout"] == f"{runtime.workspace}\n"


async def test_background_execution_starts_a_process(
    http: aiohttp.ClientSession, processes: Processes
) -> None:
    async with http.post("/api/execute", json={"command": "echo hi", "background": True}) as response:
        found = await response.json()
    assert set(found) == {"success", "processId", "pid", "command", "timestamp"}
    assert (await processes.logs(found["processId"]))["stdout"] == "hi\n"


async def test_a_streamed_command_is_a_process(http: aiohttp.ClientSession, processes: Processes) -> None:
    body = {"command": "echo out; echo err >&2; sleep 333.0125"}
    process_id = ""
    async with http.post("/api/execute/stream", json=body) as response:
        found: list[Json] = []
        async for event in events(response):
            found.append(event)
            if event["type"] == "start":
                process_id = event["processId"]
                await processes.wait(process_id, "log", text="err")
                assert (await processes.get(process_id))["status"] == "running"
                await processes.kill(process_id)
    assert (found[-1]["type"], found[-1]["exitCode"]) == ("complete", 143)
    assert (await processes.get(process_id))["status"] == "killed"
    logs = await processes.logs(process_id)
    assert (logs["stdout"], logs["stderr"]) == ("out\n", "err\n")


async def test_a_streamed_command_whose_reader_left_still_has_its_log(
    http: aiohttp.ClientSession, processes: Processes
) -> None:
    body = {"command": "echo before; read -r -t 1 < <(sleep 0.5); echo after"}
    process_id = ""
    async with http.post("/api/execute/stream", json=body) as response:
        async for event in events(response):
            if event["type"] == "start":
                process_id = event["processId"]
            if event["type"] == "stdout":
                break
    await processes.wait(process_id)
    assert (await processes.logs(process_id))["stdout"] == "before\nafter\n"


async def test_a_killed_stream_ends_though_its_reader_reads_nothing(
    runtime: Runtime, processes: Processes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port, limit=4096)
    body = b'{"command":"exec yes 333.0141"}'
    writer.write(
        b"POST /api/execute/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )
    await soon(lambda: running("yes 333.0141"))
    found = (await processes.listed("?status=running"))[-1]
    await asyncio.wait_for(processes.kill(found["id"]), 10)
    assert (await processes.get(found["id"]))["status"] == "killed"
    assert await asyncio.wait_for(reader.read(100), 5)
    writer.close()


async def test_no_more_run_than_may(start: Callable[..., Runtime]) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:
        processes = Processes(http)
        await asyncio.gather(*(processes.start("exec sleep 333.0125") for _ in range(256)))
        found = await processes.start("true", status=409, processId="refused")
        assert found["code"] == "RESOURCE_BUSY"
        assert "256" in found["message"]
        # A refusal is no failure of a process: there is no record of it.
        await processes.request("GET", "refused", status=404)
        assert (await processes.request("DELETE", "kill-all"))["cleanedCount"] == 256
        await processes.start("true")


async def test_the_oldest_of_those_that_ended_are_forgotten(start: Callable[..., Runtime]) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:
        processes = Processes(http)
        await processes.start("exec sleep 333.0125", processId="lives")
        for number in range(520):
            await processes.start("exit 3", processId=f"p{number}", cwd="/no/such/place", status=500)
        found = [each["id"] for each in await processes.listed()]
        assert found == ["lives", *(f"p{number}" for number in range(8, 520))]
        gone = await processes.request("GET", "p0", status=404)
        assert "512" in gone["suggestion"]
