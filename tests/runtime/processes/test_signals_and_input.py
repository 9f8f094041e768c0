"""Signals to processes, and writing to their standard input."""

import base64

import pytest

from tests.support.processes import Processes

TRAP = "trap 'echo got INT' INT; trap 'echo got USR1; exit 3' USR1; echo on; while :; do sleep 0.02; done"


async def test_a_signal_reaches_the_process(processes: Processes) -> None:
    process_id = (await processes.start(TRAP))["processId"]
    await processes.wait(process_id, "log", text="on")
    found = await processes.request("POST", f"{process_id}/signal", json={"signal": "int"})
    assert found["signal"] == 2
    await processes.wait(process_id, "log", text="got INT", timeoutMs=5000)
    await processes.request("POST", f"{process_id}/signal", json={"signal": 10})
    assert (await processes.wait(process_id, timeoutMs=5000))["exitCode"] == 3


async def test_a_signal_to_the_tree_reaches_the_children(processes: Processes) -> None:
    child = "trap 'echo child; exit' USR1; echo on; while :; do sleep 0.02; done"
    command = f'sh -c "{child}" & trap : USR1; wait; wait'
    process_id = (await processes.start(command))["processId"]
    await processes.wait(process_id, "log", text="on")
    await processes.request("POST", f"{process_id}/signal", json={"signal": "SIGUSR1", "tree": True})
    await processes.wait(process_id, "log", text="child", timeoutMs=5000)


@pytest.mark.parametrize("signal", ["NOSUCH", 0, 65, -1, 1.5, None, ""])
async def test_what_is_no_signal_is_refused(processes: Processes, signal: object) -> None:
    await processes.start("sleep 33.0125", processId="p")
    found = await processes.request("POST", "p/signal", json={"signal": signal}, status=400)
    assert found["code"] == "VALIDATION_FAILED"


async def test_input_is_read_as_it_is_written_and_ends_when_told(processes: Processes) -> None:
    process_id = (await processes.start("cat; echo over", stdin="open"))["processId"]
    await processes.request("POST", f"{process_id}/stdin", json={"data": "one\n"})
    await processes.wait(process_id, "log", text="one", timeoutMs=5000)
    data = base64.b64encode(b"\xc3\xa4\n").decode()
    body = {"data": data, "encoding": "base64", "end": True}
    await processes.request("POST", f"{process_id}/stdin", json=body)
    await processes.wait(process_id, timeoutMs=5000)
    assert (await processes.logs(process_id))["stdout"] == "one\nä\nover\n"


async def test_input_that_nobody_reads_is_bounded(processes: Processes) -> None:
    process_id = (await processes.start("exec sleep 33.0125", stdin="open"))["processId"]
    piece = "x" * (900 << 10)
    for _ in range(9):
        await processes.request("POST", f"{process_id}/stdin", json={"data": piece})
    found = await processes.request("POST", f"{process_id}/stdin", json={"data": piece}, status=409)
    assert found["code"] == "RESOURCE_BUSY"
    assert "8 MiB" in found["message"]


async def test_input_needs_a_process_that_was_started_for_it(processes: Processes) -> None:
    process_id = (await processes.start("cat; exec sleep 33.0125"))["processId"]
    found = await processes.request("POST", f"{process_id}/stdin", json={"data": "x"}, status=400)
    assert found["code"] == "VALIDATION_FAILED"
    await processes.kill(process_id)
    found = await processes.request("POST", f"{process_id}/stdin", json={"data": "x"}, status=404)
    assert found["code"] == "COMMAND_NOT_FOUND"
