"""`/ws/pty`: the terminal of a session."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.support.runtime import Runtime, soon
from tests.support.terminal import Viewer

Json = dict[str, Any]
Execute = Callable[..., Any]
Listed = Callable[[], Any]
Attach = Callable[..., Viewer]


@pytest_asyncio.fixture
async def attach(http: aiohttp.ClientSession) -> AsyncIterator[Attach]:
    """Sessions that tests name are deleted in the end."""
    named: set[str] = set()

    def to(session: str, query: str = "", **options: Any) -> Viewer:
        named.add(session)
        return Viewer(http, f"/ws/pty?sessionId={session}{query}", **options)

    yield to
    for session in named:
        await http.post("/api/session/delete", json={"sessionId": session})


async def test_it_starts_where_the_session_is_with_what_it_exports(execute: Execute, attach: Attach) -> None:
    await execute("mkdir -p sub && cd sub && export COLOUR='deep blue' && HIDDEN=yes", sessionId="mine")
    async with attach("mine") as viewer:
        text = await viewer.run('echo "$COLOUR,$HIDDEN,$TERM"; pwd; stty size')
        assert "deep blue,,xterm-256color\r\n" in text
        assert "/workspace/sub\r\n" in text
        assert "24 80\r\n" in text


async def test_nothing_flows_back(execute: Execute, attach: Attach) -> None:
    await execute("export A=session", sessionId="mine")
    async with attach("mine") as viewer:
        await viewer.run("export A=terminal; cd /")
    found = await execute("echo $A; pwd", sessionId="mine")
    assert found["stdout"].startswith("session\n")
    assert found["stdout"] != "session\n/\n"


async def test_it_does_not_wait_for_a_command_in_the_session(
    execute: Execute, attach: Attach, runtime: Runtime
) -> None:
    await execute("export BEFORE=yes", sessionId="mine")
    running = asyncio.create_task(
        execute("export BEFORE=no; until test -e go; do sleep 0.05; done", sessionId="mine")
    )
    await soon(lambda: any("sleep" in line for line in runtime.descendants().values()))
    async with attach("mine") as viewer:
        assert "yes\r\n" in await viewer.run("echo $BEFORE")
        await viewer.run("touch go")
    await running


async def test_session_and_terminal_are_made_when_they_are_not_there(
    http: aiohttp.ClientSession, attach: Attach, listed: Listed
) -> None:
    async with attach("fresh", "&cols=100&rows=30&shell=sh") as viewer:
        assert "30 100\r\n" in await viewer.run("stty size")
        found = (await listed())["fresh"]
        assert (found["sessionId"], found["cols"], found["rows"]) == ("fresh", 100, 30)
    async with http.get("/api/session/list") as response:
        assert "fresh" in str(await response.json())


async def test_later_connections_share_it_and_their_wishes_are_ignored(
    attach: Attach, listed: Listed
) -> None:
    async with attach("mine") as first:
        await first.run("echo ear''lier")
        pid = (await listed())["mine"]["pid"]
        async with attach("mine", "&cols=5&rows=5&shell=no-such-shell") as second:
            await second.told("ready")
            assert second.kinds[0] == "bytes"
            assert b"earlier\r\n" in second.output
            assert "24 80\r\n" in await second.run("stty size")
    assert (await listed())["mine"]["pid"] == pid


@pytest.mark.parametrize("query", ["&cols=0&rows=-1", "&cols=a", "&cols=1e3&rows=", "&cols=99999&rows=0x10"])
async def test_a_size_that_makes_no_sense_is_the_default(attach: Attach, query: str) -> None:
    async with attach("mine", query) as viewer:
        assert "24 80\r\n" in await viewer.run("stty size")


async def test_fifty_attaches_at_once_start_one_shell(
    http: aiohttp.ClientSession, attach: Attach, listed: Listed, runtime: Runtime
) -> None:
    begun = len(runtime.logged("terminal started"))
    viewers = [attach("crowd") for _ in range(50)]
    await asyncio.gather(*(viewer.__aenter__() for viewer in viewers))
    answers = await asyncio.gather(*(_first_message(viewer) for viewer in viewers))
    assert answers.count("ready") == 16  # as many as may watch one
    assert set(answers) == {"ready", "error"}
    assert len(runtime.logged("terminal started")) - begun == 1
    assert len(await listed()) == 1
    await asyncio.gather(*(viewer.__aexit__() for viewer in viewers))


async def _first_message(viewer: Viewer) -> str:
    await soon(lambda: bool(viewer.messages))
    return str(viewer.messages[0]["type"])


async def test_typing_at_once_is_not_lost(http: aiohttp.ClientSession, attach: Attach) -> None:
    async with attach("eager") as viewer:
        await viewer.type("echo ty''ped\r")
        await viewer.shows("typed\r\n")


async def test_a_named_terminal_of_the_same_id_is_another(
    post: Callable[..., Any], http: aiohttp.ClientSession, attach: Attach
) -> None:
    await post("create", id="same", shell="cat")
    async with attach("same") as viewer:
        assert "session's" in await viewer.run("echo session''\\'s")
        async with Viewer(http, "/ws/terminal?terminalId=same") as other:
            await other.told("ready")
            assert other.kinds == ["ready"]
        await post("destroy", id="same")
        assert "alive" in await viewer.run("echo al''ive")


async def test_after_exit_the_next_connection_gets_a_fresh_one(attach: Attach) -> None:
    async with attach("mine") as viewer:
        await viewer.run("echo sec''ret; GONE=no")
        await viewer.type("exit 4\r")
        assert await viewer.told("exit") == {"type": "exit", "code": 4}
        assert await viewer.closed() == 1000
    async with attach("mine") as viewer:
        assert "<>" in await viewer.run('echo "<$GONE>"')
        assert "secret" not in viewer.output.decode()


async def test_deleting_the_session_destroys_it(
    execute: Execute, http: aiohttp.ClientSession, attach: Attach, listed: Listed, runtime: Runtime
) -> None:
    await execute("true", sessionId="mine")
    async with attach("mine") as viewer:
        await viewer.run("sleep 34.01 &")
        async with http.post("/api/session/delete", json={"sessionId": "mine"}) as response:
            assert response.status == 200
        assert (await viewer.told("exit"))["code"] != 0
        assert await viewer.closed() == 1000
    await soon(lambda: runtime.descendants() == {})
    assert await listed() == {}


async def test_a_session_that_dies_takes_it_along(
    http: aiohttp.ClientSession, attach: Attach, runtime: Runtime
) -> None:
    async with attach("mine") as viewer:
        await viewer.told("ready")
        async with http.post("/api/execute", json={"command": "exit 3", "sessionId": "mine"}) as response:
            assert response.status == 410
        await viewer.told("exit")
        assert await viewer.closed() == 1000
    await soon(lambda: runtime.descendants() == {})


async def test_a_session_whose_directory_has_gone_still_has_a_terminal(
    execute: Execute, attach: Attach, runtime: Runtime
) -> None:
    await execute("mkdir gone; cd gone; rmdir ../gone", sessionId="mine")
    async with attach("mine") as viewer:
        assert f"{runtime.workspace}\r\n" in await viewer.run("pwd")


async def test_a_terminal_that_cannot_be_made_is_an_error_and_1011(attach: Attach, listed: Listed) -> None:
    async with attach("mine", "&shell=no-such-shell") as viewer:
        assert await viewer.closed() == 1011
        assert "no-such-shell" in viewer.messages[0]["message"]
    assert await listed() == {}
    async with attach("mine") as viewer:
        await viewer.told("ready")


@pytest.mark.parametrize("query", ["", "?sessionId=", "?sessionId=__DISABLE_SESSION__"])
async def test_without_a_session_there_is_none(http: aiohttp.ClientSession, query: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await http.ws_connect(f"/ws/pty{query}")
    assert caught.value.status == 400


async def test_without_an_upgrade_there_is_nothing(http: aiohttp.ClientSession, listed: Listed) -> None:
    async with http.get("/ws/pty?sessionId=x") as response:
        assert response.status == 404
        assert (await response.json())["code"] == "UNKNOWN_ERROR"
    assert await listed() == {}
