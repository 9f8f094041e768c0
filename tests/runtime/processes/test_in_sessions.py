"""Processes that begin in the state of a session, and go on without it."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

import aiohttp
import pytest
import pytest_asyncio

from tests.support.events import events, text_of
from tests.support.processes import Processes
from tests.support.runtime import running, soon

Json = dict[str, Any]


class Run(Protocol):
    async def __call__(self, command: str, **fields: Any) -> Json: ...


@pytest_asyncio.fixture
async def run(http: aiohttp.ClientSession) -> AsyncIterator[Run]:
    """Runs a command in the session `s`."""

    async def call(command: str, *, status: int = 200, **fields: Any) -> Json:
        body = {"command": command, "sessionId": "s", **fields}
        async with http.post("/api/execute", json=body) as response:
            found: Json = await response.json()
            assert response.status == status, found
            return found

    yield call
    await delete(http)


async def delete(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/session/delete", json={"sessionId": "s"}) as response:
        await response.read()


async def output(processes: Processes, command: str, **fields: Any) -> Json:
    process_id = (await processes.start(command, sessionId="s", **fields))["processId"]
    await processes.wait(process_id, timeoutMs=10_000)
    return await processes.logs(process_id) | (await processes.get(process_id))


async def test_a_process_sees_what_its_session_has(run: Run, processes: Processes) -> None:
    await run("cd /tmp; plain=1; export shown=2; f() { echo f $1; }; alias hello='echo hello'; umask 027")
    found = await output(processes, "pwd; echo $plain $shown; f x; hello; umask")
    assert (found["stdout"], found["stderr"]) == ("/tmp\n1 2\nf x\nhello\n0027\n", "")
    assert found["sessionId"] == "s"


async def test_nothing_flows_back(run: Run, processes: Processes) -> None:
    await run("cd /tmp; a=1")
    await output(processes, "cd /; a=2; export b=3")
    assert (await run("pwd; echo $a $b"))["stdout"] == "/tmp\n1\n"


async def test_the_environment_of_the_call_wins(run: Run, processes: Processes) -> None:
    await run("export a=1; b=2")
    found = await output(
        processes, "echo $a $b; pwd; sh -c 'echo $a $b'", env={"a": "x y", "b": "z"}, cwd="/usr"
    )
    assert found["stdout"] == "x y z\n/usr\nx y z\n"


async def test_a_relative_directory_is_below_that_of_the_session(run: Run, processes: Processes) -> None:
    await run("cd /usr")
    assert (await output(processes, "pwd", cwd="bin"))["stdout"] in ("/usr/bin\n", "/bin\n")


async def test_a_bad_directory_ends_it_with_an_explanation(run: Run, processes: Processes) -> None:
    await run("true")
    found = await output(processes, "echo never", cwd="/no/such/place")
    assert (found["status"], found["exitCode"], found["stdout"]) == ("failed", 1, "")
    assert "/no/such/place" in found["stderr"]


async def test_a_bad_name_is_refused(run: Run, processes: Processes) -> None:
    await run("true")
    found = await processes.start("true", sessionId="s", env={"a-b": "c"}, status=500)
    assert found["code"] == "STREAM_START_ERROR"


async def test_the_session_goes_on_while_its_process_runs(run: Run, processes: Processes) -> None:
    await run("a=1")
    process_id = (await processes.start("echo on; read -r; echo $a", sessionId="s", stdin="open"))[
        "processId"
    ]
    await run("a=2")
    await processes.request("POST", f"{process_id}/stdin", json={"data": "\n"})
    await processes.wait(process_id, timeoutMs=5000)
    assert (await processes.logs(process_id))["stdout"] == "on\n1\n"


async def test_a_timeout_of_the_process_leaves_the_session_usable(run: Run, processes: Processes) -> None:
    await run("a=1")
    found = await output(processes, "echo part; sleep 233.0151", timeoutMs=200)
    assert (found["exitCode"], found["stdout"]) == (124, "part\n")
    assert (await run("echo $a"))["stdout"] == "1\n"


@pytest.mark.parametrize("end", ["delete", "exit", "timeout"])
async def test_a_process_ends_with_its_session(
    run: Run, processes: Processes, http: aiohttp.ClientSession, end: str
) -> None:
    await run("true")
    own = (await processes.start("sleep 233.0152 & wait", sessionId="s"))["processId"]
    other = (await processes.start("exec sleep 233.0153"))["processId"]
    if end == "delete":
        await delete(http)
    elif end == "exit":
        await run("exit 3", status=410)
    else:
        await run("sleep 233.0154", timeoutMs=100, status=500)
    await processes.wait(own, timeoutMs=10_000)
    assert (await processes.get(own))["status"] == "killed"
    await soon(lambda: not running("sleep 233.0152"))
    assert (await processes.get(other))["status"] == "running"


async def test_a_stream_begins_in_the_session_too(run: Run, http: aiohttp.ClientSession) -> None:
    await run("cd /tmp; a=1")
    async with http.post(
        "/api/execute/stream", json={"command": "pwd; echo $a", "sessionId": "s"}
    ) as response:
        found = [event async for event in events(response)]
    assert found[0]["sessionId"] == "s"
    assert text_of(found, "stdout") == "/tmp\n1\n"


async def test_a_large_command_runs_in_a_session_as_well(run: Run, processes: Processes) -> None:
    await run("a=1")
    found = await output(processes, f"echo $a '{'x' * 200_000}' | wc -c")
    assert found["stdout"] == "200003\n"
