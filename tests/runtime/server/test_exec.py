"""The buffered, stateless command: `/api/execute`."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime, running, soon

Execute = Callable[..., Any]


async def refused(http: aiohttp.ClientSession, body: dict[str, Any], *, status: int = 400) -> dict[str, Any]:
    async with http.post("/api/execute", json=body) as response:
        found = await response.json()
        assert (response.status, found["httpStatus"]) == (status, status), found
        return found


async def test_the_reply_has_the_fields_of_the_protocol(execute: Execute) -> None:
    found = await execute("echo out; echo err >&2")
    assert found.pop("timestamp")
    assert found.pop("duration") >= 0
    assert found == {
        "success": True,
        "exitCode": 0,
        "stdout": "out\n",
        "stderr": "err\n",
        "command": "echo out; echo err >&2",
    }


async def test_nothing_of_one_call_reaches_the_next(execute: Execute) -> None:
    await execute("export A=1; cd /; alias a=b; f() { echo f; }")
    found = await execute('echo "$A"; f; pwd')
    assert found["stdout"].startswith("\n")
    assert "f" not in found["stdout"].split("\n")
    assert "not found" in found["stderr"]


async def test_the_disable_token_means_no_session_and_is_not_echoed(execute: Execute) -> None:
    found = await execute("echo yes", sessionId="__DISABLE_SESSION__")
    assert found["stdout"] == "yes\n"
    assert "sessionId" not in found


async def test_an_empty_session_id_counts_as_not_given(execute: Execute) -> None:
    assert (await execute("echo yes", sessionId=""))["stdout"] == "yes\n"


@pytest.mark.parametrize("session", [" ", "\t\n"])
async def test_a_blank_session_id_is_refused(http: aiohttp.ClientSession, session: str) -> None:
    found = await refused(http, {"command": "true", "sessionId": session})
    assert found["code"] == "VALIDATION_FAILED"
    assert found["context"]["validationErrors"][0]["field"] == "sessionId"


async def test_a_session_that_is_named_is_echoed(execute: Execute, http: aiohttp.ClientSession) -> None:
    found = await execute("cd /tmp", sessionId="mine")
    assert found["sessionId"] == "mine"
    assert (await execute("pwd", sessionId="mine"))["stdout"] == "/tmp\n"
    async with http.post("/api/session/delete", json={"sessionId": "mine"}) as response:
        assert response.status == 200


async def test_the_commands_of_a_session_have_no_input(http: aiohttp.ClientSession) -> None:
    found = await refused(http, {"command": "cat", "sessionId": "mine", "stdin": "x"})
    assert found["context"]["validationErrors"][0]["field"] == "stdin"


async def test_a_session_in_a_header_or_the_query_is_not_overlooked(http: aiohttp.ClientSession) -> None:
    for path, headers in (
        ("/api/execute", {"X-Session-Id": "mine"}),
        ("/api/execute?session=mine", {}),
        ("/api/execute?sessionId=mine", {}),
    ):
        async with http.post(path, json={"command": "true"}, headers=headers) as response:
            assert (await response.json())["sessionId"] == "mine"
    async with http.post("/api/session/delete", json={"sessionId": "mine"}) as response:
        assert response.status == 200


async def test_authorization_is_never_a_session_id(http: aiohttp.ClientSession) -> None:
    async with http.post(
        "/api/execute", json={"command": "true"}, headers={"Authorization": "Bearer mine"}
    ) as response:
        assert response.status == 200


async def test_a_failing_command_is_a_reply_and_not_an_error(execute: Execute) -> None:
    found = await execute("exit 7")
    assert (found["exitCode"], found["success"]) == (7, False)


async def test_an_unknown_program_is_exit_code_127(execute: Execute) -> None:
    found = await execute("no-such-program --help")
    assert found["exitCode"] == 127
    assert "no-such-program" in found["stderr"]


@pytest.mark.parametrize(("signal", "code"), [("TERM", 143), ("KILL", 137), ("HUP", 129), ("PIPE", 141)])
async def test_death_by_a_signal_is_128_and_its_number(execute: Execute, signal: str, code: int) -> None:
    assert (await execute(f"kill -{signal} $$"))["exitCode"] == code


async def test_commands_start_with_no_signal_ignored_or_blocked(execute: Execute) -> None:
    found = await execute("grep -E 'SigBlk|SigIgn' /proc/self/status")
    _, blocked, _, ignored = found["stdout"].split()
    # Signals 32 and 33 belong to the C library, which lets nobody touch them.
    assert int(blocked, 16) == int(ignored, 16) & ~(1 << 31 | 1 << 32) == 0


async def test_a_timeout_ends_the_command_and_says_so_at_the_end_of_stderr(execute: Execute) -> None:
    found = await execute("echo before; echo oops >&2; sleep 9; echo after", timeoutMs=500)
    assert (found["exitCode"], found["success"]) == (124, False)
    assert found["stdout"] == "before\n"
    assert found["stderr"] == "oops\nCommand timed out after 500ms"
    assert found["duration"] < 5000


async def test_the_note_of_a_timeout_gets_a_line_of_its_own(execute: Execute) -> None:
    found = await execute("printf half >&2; sleep 9", timeoutMs=500)
    assert found["stderr"] == "half\nCommand timed out after 500ms"


async def test_a_timeout_of_zero_is_no_timeout(execute: Execute) -> None:
    assert (await execute("sleep 0.1", timeoutMs=0))["exitCode"] == 0


async def test_null_means_not_given(execute: Execute) -> None:
    found = await execute(
        "echo yes", sessionId=None, timeoutMs=None, env=None, cwd=None, origin=None, stdin=None
    )
    assert found["stdout"] == "yes\n"


async def test_the_calls_environment_overrides_and_null_values_are_skipped(execute: Execute) -> None:
    found = await execute('echo "$A,$HOME,${B-unset}"', env={"A": "1", "HOME": "/elsewhere", "B": None})
    assert found["stdout"] == "1,/elsewhere,unset\n"


async def test_commands_start_in_the_workspace(execute: Execute, runtime: Runtime) -> None:
    assert (await execute("pwd"))["stdout"] == f"{runtime.workspace}\n"


async def test_cwd_is_of_one_call_and_may_be_relative(execute: Execute, runtime: Runtime) -> None:
    (runtime.workspace / "sub").mkdir(exist_ok=True)
    assert (await execute("pwd", cwd="/"))["stdout"] == "/\n"
    assert (await execute("pwd", cwd="sub"))["stdout"] == f"{runtime.workspace}/sub\n"
    assert (await execute("pwd", cwd=""))["stdout"] == f"{runtime.workspace}\n"


async def test_without_a_workspace_commands_start_in_home(
    start: Callable[..., Runtime], tmp_path: Path
) -> None:
    runtime = start(environ={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    runtime.workspace.rmdir()
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.post("/api/execute", json={"command": "pwd"}) as response,
    ):
        assert (await response.json())["stdout"] == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("cwd", "reason"),
    [("/no/such/place", "No such file"), ("/etc/passwd", "Not a directory"), ("x" * 300, "too long")],
)
async def test_a_cwd_that_cannot_be_entered_is_an_error_and_nothing_runs(
    http: aiohttp.ClientSession, runtime: Runtime, cwd: str, reason: str
) -> None:
    found = await refused(http, {"command": f"touch {runtime.workspace}/ran", "cwd": cwd}, status=500)
    assert found["code"] == "COMMAND_EXECUTION_ERROR"
    assert reason in found["message"]
    assert found["context"]["command"]
    assert not (runtime.workspace / "ran").exists()


async def test_a_child_in_the_background_does_not_hold_the_reply_and_lives_on(execute: Execute) -> None:
    begun = time.monotonic()
    found = await execute("sleep 430.0125 & echo hi")
    assert time.monotonic() - begun < 2
    assert found["stdout"] == "hi\n"
    assert running("sleep 430.0125")
    await execute("pkill -f 'sleep 430[.]0125'")


async def test_a_background_child_that_goes_on_writing_is_not_killed_by_it(
    execute: Execute, runtime: Runtime
) -> None:
    """Its pipe must stay open: a server that logs to its standard output would die of a closed one."""
    mark = runtime.workspace / "survived"
    found = await execute(f"(sleep 1; echo late; echo late; touch {mark}) & echo hi")
    assert found["stdout"] == "hi\n"
    await soon(mark.exists, timeout=5)


async def test_a_background_child_that_never_stops_writing_does_not_hold_the_reply(execute: Execute) -> None:
    begun = time.monotonic()
    found = await execute("yes 430.0126 & sleep 0.1", maxOutputBytes=1000)
    took = time.monotonic() - begun
    await execute("pkill -f 'yes 430[.]0126'")
    assert took < 3
    assert found["stdout"].startswith("430.0126\n")


async def test_a_deadline_is_the_commands_and_not_its_background_childrens(execute: Execute) -> None:
    found = await execute("sleep 430.0127 & echo hi", timeoutMs=250)
    assert (found["exitCode"], found["stderr"]) == (0, "")
    assert running("sleep 430.0127")
    await execute("pkill -f 'sleep 430[.]0127'")


async def test_duration_is_in_real_milliseconds(execute: Execute) -> None:
    assert 200 <= (await execute("sleep 0.2"))["duration"] < 2000


@pytest.mark.parametrize("body", [{}, {"command": ""}, {"command": " \n\t"}, {"command": None}])
async def test_a_missing_or_blank_command_is_invalid(
    http: aiohttp.ClientSession, body: dict[str, Any]
) -> None:
    found = await refused(http, body)
    assert found["code"] == "INVALID_COMMAND"
    assert "command" in found["context"]


async def test_nul_is_refused_wherever_it_stands(http: aiohttp.ClientSession) -> None:
    assert (await refused(http, {"command": "a\0b"}))["code"] == "INVALID_COMMAND"
    for body in ({"cwd": "/\0"}, {"env": {"A": "\0"}}, {"env": {"A\0": "b"}}):
        assert (await refused(http, {"command": "true", **body}))["code"] == "VALIDATION_FAILED"


@pytest.mark.parametrize("name", ["", "A=B", "A\n", "Ä", "SANDPOD_X"])
async def test_names_of_variables_are_checked(http: aiohttp.ClientSession, name: str) -> None:
    found = await refused(http, {"command": "true", "env": {name: "x"}})
    assert found["code"] == "VALIDATION_FAILED"
    assert found["context"]["validationErrors"][0]["field"].startswith("env.")


async def test_an_environment_that_linux_cannot_take_is_refused(http: aiohttp.ClientSession) -> None:
    found = await refused(http, {"command": "true", "env": {"A": "x" * 200_000}})
    assert found["code"] == "VALIDATION_FAILED"
    assert "128 KiB" in found["message"]


async def test_commands_run_side_by_side(execute: Execute) -> None:
    begun = time.monotonic()
    await asyncio.gather(*(execute("sleep 0.5") for _ in range(20)))
    assert time.monotonic() - begun < 3


async def test_commands_inherit_no_descriptor_of_the_runtime(execute: Execute) -> None:
    found = await execute("ls /proc/$$/fd; true")
    assert found["stdout"].split() == ["0", "1", "2"]


async def test_each_command_leads_a_session_of_its_own(execute: Execute) -> None:
    found = await execute("cut -d' ' -f5,6 /proc/$$/stat; echo $$")
    group, session, pid = found["stdout"].split()
    assert group == session == pid
