"""Waiting for processes: for their end, for what they write, for their port."""

import asyncio
import time
from typing import Any

import pytest

from tests.support.processes import Processes
from tests.support.runtime import Runtime

SERVER = "python3 -u -c 'import socket,time; s=socket.create_server((\"127.0.0.1\",{port})); time.sleep(33)'"


async def test_waiting_for_the_end_answers_with_the_exit_code(processes: Processes) -> None:
    process_id = (await processes.start("sleep 0.2; exit 4"))["processId"]
    found = await processes.wait(process_id)
    assert (found["for"], found["exitCode"], found["status"]) == ("exit", 4, "failed")


async def test_waiting_for_a_text_answers_with_its_line(processes: Processes) -> None:
    command = "echo first; sleep 0.2; printf 'now rea'; sleep 0.1; echo 'dy at 3000' >&1; exec sleep 33.0125"
    process_id = (await processes.start(command))["processId"]
    found = await processes.wait(process_id, "log", text="ready")
    assert (found["stream"], found["line"].startswith("now ready")) == ("stdout", True)
    assert found["status"] == "running"


async def test_a_regex_is_matched_line_by_line(processes: Processes) -> None:
    command = "echo already; echo 'Listening on :8080' >&2; printf 'ready> '; exec sleep 33.0125"
    process_id = (await processes.start(command))["processId"]
    found = await processes.wait(process_id, "log", regex=r"(?i)listening on .*:\d+$")
    assert (found["stream"], found["line"]) == ("stderr", "Listening on :8080")
    assert (await processes.wait(process_id, "log", regex="^ready"))["line"].startswith("ready")
    late = await processes.wait(process_id, "log", regex="^rea$", timeoutMs=200, status=408)
    assert late["code"] == "PROCESS_READY_TIMEOUT"


async def test_a_stream_can_be_chosen(processes: Processes) -> None:
    process_id = (await processes.start("echo x; exec sleep 33.0125"))["processId"]
    await processes.wait(process_id, "log", text="x", stream="stdout")
    await processes.wait(process_id, "log", text="x", stream="stderr", timeoutMs=100, status=408)


async def test_a_wait_that_takes_too_long_says_for_what(processes: Processes) -> None:
    process_id = (await processes.start("exec sleep 33.0125"))["processId"]
    for condition in ({"for": "exit"}, {"for": "log", "text": "x"}, {"for": "port", "port": 1}):
        body = {**condition, "timeoutMs": 150}
        found = await processes.request("POST", f"{process_id}/wait", json=body, status=408)
        assert found["code"] == "PROCESS_READY_TIMEOUT"
        assert found["context"] == {
            "processId": process_id,
            "command": "exec sleep 33.0125",
            "condition": condition["for"],
            "timeout": 150,
        }


async def test_a_process_that_ends_first_is_told(processes: Processes) -> None:
    process_id = (await processes.start("echo almost; exit 5"))["processId"]
    for fields in ({"text": "ready"}, {"regex": "ready"}):
        found = await processes.wait(process_id, "log", status=500, **fields)
        assert found["code"] == "PROCESS_EXITED_BEFORE_READY"
        assert found["context"]["exitCode"] == 5
    found = await processes.wait(process_id, "port", port=1, status=500)
    assert found["code"] == "PROCESS_EXITED_BEFORE_READY"


async def test_waiting_for_a_port_ends_when_it_answers(processes: Processes, unused_tcp_port: int) -> None:
    process_id = (await processes.start(SERVER.format(port=unused_tcp_port)))["processId"]
    found = await processes.wait(process_id, "port", port=unused_tcp_port, timeoutMs=20_000)
    assert found["status"] == "running"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"for": "luck"},
        {"for": "log"},
        {"for": "log", "text": "a", "regex": "b"},
        {"for": "log", "text": ""},
        {"for": "log", "regex": "("},
        {"for": "log", "regex": r"(a)\1"},
        {"for": "log", "regex": "a" * 2000},
        {"for": "port"},
        {"for": "port", "port": 70000},
        {"for": "exit", "timeoutMs": -1},
    ],
)
async def test_what_cannot_be_waited_for_is_refused(processes: Processes, body: dict[str, Any]) -> None:
    await processes.start("true", processId="p")
    found = await processes.request("POST", "p/wait", json=body, status=400)
    assert found["code"] == "VALIDATION_FAILED"


async def test_hostile_expressions_hold_up_nobody(processes: Processes, runtime: Runtime) -> None:
    command = "while :; do printf 'a%.0s' $(seq 1 3000); echo b; done"
    process_id = (await processes.start(command))["processId"]
    waits = [
        asyncio.create_task(
            processes.wait(
                process_id, "log", regex=f"((a?){{20}}){{20}}a{{{20 + each}}}c", timeoutMs=3000, status=408
            )
        )
        for each in range(10)
    ]
    slowest = 0.0
    while not all(wait.done() for wait in waits):
        begun = time.monotonic()
        await processes.request("GET", "list")
        slowest = max(slowest, time.monotonic() - begun)
    await asyncio.gather(*waits)
    assert slowest < 2
