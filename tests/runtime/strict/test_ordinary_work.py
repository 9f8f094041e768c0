"""What people do in a sandbox goes on as ever in a world of its own."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from tests.support.runtime import TERMINATED, Runtime, running, soon
from tests.support.terminal import Viewer
from tests.support.user_namespace import FIRST_UID

Json = dict[str, Any]
Run = Callable[..., Awaitable[tuple[str, int]]]
Post = Callable[..., Awaitable[Json]]


async def uid(run: Run) -> int:
    return int((await run("id -u"))[0])


async def test_files_of_clients_are_the_users(runtime: Runtime, run: Run, post: Post) -> None:
    path = runtime.workspace / "a" / "written"
    await post("/api/mkdir", path=str(path.parent))
    await post("/api/write", path=str(path), content="text")
    assert path.stat().st_uid == path.parent.stat().st_uid == FIRST_UID + await uid(run)
    assert await run(f"echo more >> {path} && cat {path}") == ("textmore\n", 0)
    assert (await post("/api/read", path=str(path)))["content"] == "textmore\n"


async def test_clients_may_not_do_more_than_the_user(runtime: Runtime, run: Run, post: Post) -> None:
    if await uid(run) != 0:
        assert (await post("/api/write", status=403, path="/etc/made-here", content=""))["code"]
        assert (await post("/api/read", status=403, path="/etc/shadow"))["code"]
    own = await post("/api/read", path="/proc/1/cmdline")
    assert own["success"]


async def test_root_may_do_what_installing_packages_takes(runtime: Runtime, run: Run) -> None:
    if await uid(run) != 0:
        return
    path = runtime.workspace / "installed"
    change = (
        f"touch {path} && chown 33:44 {path} && chmod 4755 {path} && mkdir -p d && chown 5 d && touch d/x"
    )
    assert await run(change) == ("", 0)
    assert (path.stat().st_uid, path.stat().st_mode & 0o7777) == (FIRST_UID + 33, 0o4755)
    assert await run("setpriv --reuid=33 --clear-groups id -u") == ("33\n", 0)


async def test_a_session_keeps_its_directory_and_variables(runtime: Runtime, post: Post) -> None:
    await post("/api/session/create", id="one")
    await post("/api/execute", sessionId="one", command="cd /usr; kept=5; f() { echo $kept; }")
    assert (await post("/api/execute", sessionId="one", command="pwd; f"))["stdout"] == "/usr\n5\n"
    await post("/api/session/delete", sessionId="one")


async def test_the_numbers_of_processes_are_those_that_commands_see(
    runtime: Runtime, run: Run, post: Post, http: aiohttp.ClientSession
) -> None:
    started = await post("/api/process/start", command="exec sleep 7422")
    assert await run(f"tr '\\0' ' ' < /proc/{started['pid']}/cmdline") == ("sleep 7422 ", 0)
    assert await run(f"kill {started['pid']}") == ("", 0)
    await soon(lambda: not running("sleep 7422"))


async def test_a_process_that_listens_is_found_by_its_port(
    runtime: Runtime, post: Post, http: aiohttp.ClientSession
) -> None:
    listen = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); time.sleep(7423)"
    started = await post("/api/process/start", command=f'exec /usr/bin/python3 -c "{listen}"')

    async def found() -> list[Json]:
        async with http.get("/api/ports") as response:
            ports = (await response.json())["ports"]
        return [each for each in ports if each.get("processId") == started["processId"]]

    for _ in range(400):
        if await found():
            break
        await asyncio.sleep(0.05)
    assert [each["pid"] for each in await found()] == [started["pid"]]
    async with http.delete(f"/api/process/{started['processId']}") as response:
        assert response.status == 200
    await soon(lambda: not running("time.sleep(7423)"))


async def test_a_kill_ends_also_what_has_left_its_parents(
    runtime: Runtime, post: Post, http: aiohttp.ClientSession
) -> None:
    tree = "(setsid sh -c 'sleep 7424; :' &); (setsid env -i sleep 7424 &); sleep 7424"
    started = await post("/api/process/start", command=tree)
    await soon(lambda: running("sleep 7424"))
    async with http.delete(f"/api/process/{started['processId']}") as response:
        assert response.status == 200
    await soon(lambda: not running("sleep 7424"))


async def test_job_control_works_in_a_terminal(
    runtime: Runtime, run: Run, post: Post, http: aiohttp.ClientSession
) -> None:
    await post("/api/terminal/create", id="it", shell="bash")
    async with Viewer(http, "/ws/terminal?terminalId=it") as viewer:
        await viewer.told("ready")
        await viewer.type("sleep 7425\n")
        await soon(lambda: running("sleep 7425"))
        await viewer.type(b"\x1a")
        await viewer.shows("Stopped")
        await viewer.type("jobs; id -u; tty\n")
        await viewer.shows("/dev/pts/")
        await viewer.type("kill %1; fg\n")
        await soon(lambda: not running("sleep 7425"))
    await post("/api/terminal/destroy", id="it")


async def test_a_search_runs_as_the_user(runtime: Runtime, post: Post) -> None:
    (runtime.workspace / "found-by-search").write_text("a needle\n", encoding="utf-8")
    body = await post("/api/files/grep", path=str(runtime.workspace), pattern="needle")
    assert "found-by-search" in str(body)


async def test_orphans_are_buried_by_the_worlds_first_process(runtime: Runtime, run: Run) -> None:
    await run("for i in 1 2 3; do (setsid true &); done")
    for _ in range(200):
        told, _ = await run("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z' || true")
        if told.strip() == "0":
            return
        await asyncio.sleep(0.02)
    raise AssertionError("zombies are left")


async def test_the_world_ends_with_the_runtime(strict: Callable[..., Runtime]) -> None:
    runtime = strict()
    first = [pid for pid, line in runtime.descendants().items() if "first process" in line]
    assert len(first) == 1
    assert runtime.stop() == TERMINATED
    await soon(lambda: not os.path.exists(f"/proc/{first[0]}"))  # noqa: PTH110


async def test_sessions_come_back_after_a_sleep(strict: Callable[..., Runtime]) -> None:
    before = strict()
    async with aiohttp.ClientSession(before.url) as http:
        await http.post("/api/session/create", json={"id": "one"})
        await http.post("/api/execute", json={"sessionId": "one", "command": "cd /usr; export KEPT=yes"})
    assert before.stop() == TERMINATED
    after = strict(workspace=before.workspace)
    async with aiohttp.ClientSession(after.url) as http:
        answer = await http.post("/api/execute", json={"sessionId": "one", "command": "pwd; echo $KEPT"})
        assert (await answer.json())["stdout"] == "/usr\nyes\n"
