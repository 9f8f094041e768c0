"""Making, listing and deleting sessions, and how they end."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import TERMINATED, Runtime, running, soon, unprivileged

Sessions = Any


async def test_create_tells_the_id_the_directory_and_the_shell(sessions: Sessions, runtime: Runtime) -> None:
    found = await sessions.create(env={"SECRET": "x"}, name="ignored", isolation=True)
    assert (found["id"], found["sessionId"]) == ("s", "s")
    assert (found["cwd"], found["shell"]) == (str(runtime.workspace), "bash")
    assert found["containerPlacementId"] is None
    assert "SECRET" not in str(found)
    assert (await sessions.get("/api/session/s"))["state"] == "idle"


async def test_an_id_is_made_up_where_none_is_given(sessions: Sessions) -> None:
    found = await sessions.post("/api/session/create")
    assert re.fullmatch(r"session_\d{13}_[0-9a-f]{12}", found["id"])
    assert await sessions.ids() == [found["id"]]


async def test_the_environment_and_directory_from_create_are_there_at_the_first_command(
    sessions: Sessions, runtime: Runtime
) -> None:
    await sessions.create(env={"A": "it's\n$HOME", "NOT": None}, cwd="/usr/lib")
    assert await sessions.out('pwd; echo "$A"; echo "${NOT-unset}"') == "/usr/lib\nit's\n$HOME\nunset\n"
    await sessions.create("t", cwd="/no/such/directory")
    assert await sessions.out('[ "$PWD" = "$HOME" ] && echo home', session="t") == "home\n"


async def test_a_second_create_is_refused_with_what_a_client_needs_to_attach(sessions: Sessions) -> None:
    await sessions.create()
    found = await sessions.create(status=409)
    assert found["code"] == "SESSION_ALREADY_EXISTS"
    assert found["context"] == {"sessionId": "s", "containerPlacementId": None}


async def test_of_twenty_creates_at_once_one_succeeds_and_there_is_one_shell(
    sessions: Sessions, runtime: Runtime, http: Any
) -> None:
    async def create() -> int:
        async with http.post("/api/session/create", json={"id": "s"}) as response:
            return response.status

    found = await asyncio.gather(*(create() for _ in range(20)))
    assert sorted(found) == [200] + [409] * 19
    assert len(runtime.descendants()) == 1


@pytest.mark.parametrize("given", ["", " ", "__DISABLE_SESSION__", "a\nb", "x" * 257, None])
async def test_ids_that_cannot_be_are_refused(sessions: Sessions, given: str | None) -> None:
    if given:
        found = await sessions.create(given, status=400)
        assert (found["code"], found["context"]["validationErrors"][0]["field"]) == (
            "VALIDATION_FAILED",
            "id",
        )
    assert (await sessions.post("/api/session/delete", 400, sessionId=given))["code"] == "VALIDATION_FAILED"


async def test_bad_json_makes_no_session(sessions: Sessions, http: Any) -> None:
    async with http.post("/api/session/create", data=b"{") as response:
        assert response.status == 400
    assert await sessions.ids() == []


async def test_deleting_an_unknown_session_says_so(sessions: Sessions) -> None:
    found = await sessions.delete("nobody", status=500)
    assert found["code"] == "INTERNAL_ERROR"
    assert found["context"]["sessionId"] == "nobody"


async def test_the_first_use_of_an_id_makes_a_session_and_nothing_else_does(sessions: Sessions) -> None:
    assert (await sessions.get("/api/session/s", 404))["code"] == "UNKNOWN_ERROR"
    await sessions.post("/api/execute", command="true")
    await sessions.post("/api/execute", command="true", sessionId="__DISABLE_SESSION__")
    assert await sessions.ids() == []
    assert await sessions.out("X=1; echo $X") == "1\n"
    assert await sessions.ids() == ["s"]
    await sessions.delete()
    assert await sessions.out("echo ${X-fresh}") == "fresh\n"


async def test_exit_ends_the_session_with_its_code_and_the_next_call_is_fresh(sessions: Sessions) -> None:
    await sessions.out("X=1")
    found = await sessions.run("exit 42", status=410)
    assert (found["code"], found["context"]) == (
        "SESSION_TERMINATED",
        {"sessionId": "s", "exitCode": 42},
    )
    assert await sessions.ids() == []
    assert await sessions.out("echo ${X-fresh}") == "fresh\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [("set -e; false", 1), ("kill -9 $$", 137), ("exec true", 0), ("exec sh -c 'exit 7'", 7), ("set -t", 0)],
)
async def test_every_way_to_die_is_told(sessions: Sessions, command: str, code: int) -> None:
    found = await sessions.run(command, status=410)
    assert found["context"]["exitCode"] == code


async def test_a_death_between_calls_is_told_once(sessions: Sessions) -> None:
    mine = (await sessions.out("echo $$")).strip()
    await sessions.post("/api/execute", command=f"kill -9 {mine}")
    await sessions.ends()
    assert (await sessions.run("true", status=410))["context"]["exitCode"] == 137
    await sessions.run("true")


async def test_a_dead_session_can_be_made_anew_or_deleted(sessions: Sessions) -> None:
    await sessions.run("sleep 9", status=500, timeoutMs=100)
    await sessions.create()
    await sessions.out("true")
    await sessions.run("sleep 9", status=500, timeoutMs=100)
    await sessions.delete()
    await sessions.out("true")


async def test_a_timeout_ends_the_session_its_tree_and_is_told_twice(
    sessions: Sessions, runtime: Runtime
) -> None:
    await sessions.out("sleep 844.0161 & setsid sleep 844.0162 & true")
    found = await sessions.run("X=1; trap '' TERM; sleep 844.0163; sleep 844.0164", status=500, timeoutMs=200)
    assert found["code"] == "COMMAND_EXECUTION_ERROR"
    assert "timeout" in found["message"]
    await soon(lambda: not running("sleep 844.016"))
    assert runtime.descendants() == {}
    assert (await sessions.run("true", status=410))["context"]["exitCode"] is None
    assert await sessions.out("echo ${X-fresh}") == "fresh\n"


async def test_a_call_s_timeout_beats_the_session_s(sessions: Sessions) -> None:
    await sessions.create(commandTimeoutMs=100)
    assert await sessions.out("sleep 0.3; echo in time", timeoutMs=60_000) == "in time\n"
    await sessions.run("sleep 9", status=500)


async def test_delete_ends_what_runs_and_says_so_to_all_who_wait(
    sessions: Sessions, runtime: Runtime
) -> None:
    mark = runtime.workspace / "runs"
    calls = [asyncio.create_task(sessions.run(f": > {mark}; sleep 845.0161", status=410))]
    await soon(mark.exists)
    calls += [asyncio.create_task(sessions.run("echo never", status=410)) for _ in range(3)]
    await sessions.shows(waiting=3)
    await sessions.delete()
    for each in await asyncio.gather(*calls):
        assert each["code"] == "SESSION_DESTROYED"
    await soon(lambda: not running("sleep 845.0161"))
    mark.unlink()


async def test_calls_that_wait_when_the_shell_dies_are_told(sessions: Sessions, runtime: Runtime) -> None:
    fifo = runtime.workspace / "go"
    await sessions.out(f"mkfifo {fifo}")
    first = asyncio.create_task(sessions.run(f"read line < {fifo}; exit 5", status=410))
    await sessions.shows(state="busy")
    second = asyncio.create_task(sessions.run("echo never", status=410))
    await sessions.shows(waiting=1)
    await sessions.post("/api/execute", command=f"echo > {fifo}")
    assert (await first)["context"]["exitCode"] == 5
    assert (await second)["context"]["exitCode"] == 5
    assert await sessions.out(f"rm {fifo}; echo fresh") == "fresh\n"


async def test_sessions_and_their_queues_are_bounded(sessions: Sessions, runtime: Runtime) -> None:
    first = asyncio.create_task(sessions.run("sleep 846.0161", status=410))
    await sessions.shows(state="busy")
    calls = [asyncio.create_task(sessions.run("true", status=410)) for _ in range(64)]
    await sessions.shows(waiting=64)
    found = await sessions.run("true", status=409)
    assert found["code"] == "RESOURCE_BUSY"
    assert "64 calls" in found["message"]
    await sessions.delete()
    await asyncio.gather(first, *calls)
    for number in range(64):
        await sessions.create(f"s{number}")
    found = await sessions.create(status=409)
    assert found["code"] == "RESOURCE_BUSY"
    assert "64 sessions" in found["message"]


async def test_sessions_work_for_an_ordinary_user(start: Callable[..., Runtime]) -> None:
    runtime = start(prefix=unprivileged())
    async with aiohttp.ClientSession(runtime.url) as http:
        body = {"command": "cd /usr; id -u; readlink /proc/$$/fd/1", "sessionId": "s"}
        async with http.post("/api/execute", json=body) as response:
            found = await response.json()
        assert found["exitCode"] == 0, found
        async with http.get("/api/session/s") as response:
            assert (await response.json())["cwd"] == "/usr"
    assert runtime.stop() == TERMINATED
    assert found["stdout"].splitlines()[-1].startswith("/dev/shm/")
    assert not await asyncio.to_thread(Path(found["stdout"].splitlines()[-1]).parent.parent.exists)


async def place_of(runtime: Runtime) -> Path:
    """Where the FIFOs of all its sessions lie."""
    async with aiohttp.ClientSession(runtime.url) as http:
        body = {"command": "readlink /proc/$$/fd/1", "sessionId": "s"}
        async with http.post("/api/execute", json=body) as response:
            return Path((await response.json())["stdout"].strip()).parents[1]


async def test_a_runtime_removes_what_one_that_was_killed_has_left(start: Callable[..., Runtime]) -> None:
    living, killed = start(), start()
    kept, left = await place_of(living), await place_of(killed)
    killed.process.kill()
    killed.process.wait()
    assert left.is_dir()
    again = start()
    own = await place_of(again)
    assert (left.exists(), kept.exists(), own.exists()) == (False, True, True)
    assert (again.stop(), own.exists()) == (TERMINATED, False)


async def test_the_place_of_the_fifos_may_be_removed_again_and_again(start: Callable[..., Runtime]) -> None:
    runtime = start()
    place = await place_of(runtime)
    descriptors = runtime.descriptors()
    async with aiohttp.ClientSession(runtime.url) as http:
        for name in "abcd":
            body = {"command": f"rm -rf {place}", "sessionId": name}
            async with http.post("/api/execute", json=body) as response:
                assert (await response.json())["code"] == "SESSION_TERMINATED"
            assert await place_of(runtime) == place
    await soon(lambda: runtime.descriptors() <= descriptors)
    assert (runtime.stop(), place.exists()) == (TERMINATED, False)
