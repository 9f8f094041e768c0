"""Attaching: the replay, `ready`, then all that is live; text frames; the end of the shell."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime, soon
from tests.support.terminal import Viewer

Attach = Callable[..., Viewer]
Post = Callable[..., Any]
Listed = Callable[[], Any]


async def test_what_is_typed_reaches_the_shell_and_its_output_comes_back(
    terminal: str, attach: Attach
) -> None:
    async with attach(terminal) as viewer:
        await viewer.told("ready")
        assert "6 * 7 = 42" in await viewer.run('echo "6 * 7 = $((6 * 7))"')


async def test_a_replay_comes_before_ready_and_live_output_after_it(terminal: str, attach: Attach) -> None:
    async with attach(terminal) as first:
        await first.run("echo ear''lier")
    async with attach(terminal) as second:
        await second.told("ready")
        assert second.kinds[:2] == ["bytes", "ready"]
        assert b"earlier\r\n" in second.output
        before = len(second.output)
        await second.type("echo la''ter\r")
        await second.shows("later\r\n")
        assert second.kinds[2] == "bytes"
        assert b"later\r\n" in second.output[before:]


async def test_without_output_there_is_no_replay(post: Post, attach: Attach) -> None:
    await post("create", id="mute", shell="cat")
    async with attach("mute") as viewer:
        await viewer.told("ready")
        assert viewer.kinds == ["ready"]


async def test_a_replay_is_the_last_256_kib(terminal: str, attach: Attach) -> None:
    async with attach(terminal) as viewer:
        await viewer.run("seq 100000; echo la''st")
    async with attach(terminal) as viewer:
        await viewer.told("ready")
        assert viewer.kinds[:2] == ["bytes", "ready"]
        assert len(viewer.output) == 262_144
        assert b"\r\n99999\r\n100000\r\nlast\r\n" in viewer.output


async def test_nothing_is_lost_or_repeated_between_replay_and_live(terminal: str, attach: Attach) -> None:
    """Several attach while a counter runs: each sees an unbroken sequence."""
    async with attach(terminal) as typist:
        await typist.told("ready")
        await typist.type("stty -echo; for i in $(seq 20000); do echo n$i.; done; echo e''nd\r")
        viewers = [attach(terminal) for _ in range(6)]
        for viewer in viewers:
            await viewer.__aenter__()
            await asyncio.sleep(0.02)
        for viewer in viewers:
            text = await viewer.shows("end\r\n", timeout=60)
            numbers = [
                int(line[1:-1]) for line in text.split("\r\n") if line.startswith("n") and line[-1] == "."
            ]
            assert numbers[-1] == 20000
            assert numbers == list(range(numbers[0], 20001))
            await viewer.__aexit__()


async def test_all_viewers_see_all_output_and_all_may_type(terminal: str, attach: Attach) -> None:
    async with attach(terminal) as one, attach(terminal) as two:
        await one.told("ready")
        await two.told("ready")
        await one.type("echo from''One\r")
        await two.shows("fromOne\r\n")
        await two.type("echo from''Two\r")
        await one.shows("fromTwo\r\n")


async def test_leaving_only_detaches(terminal: str, attach: Attach, listed: Listed) -> None:
    async with attach(terminal) as viewer:
        await viewer.run("MEMORY=yes")
        pid = (await listed())["it"]["pid"]
    async with attach(terminal) as viewer:
        await viewer.run("echo mem''ory: $MEMORY")
        assert b"memory: yes\r\n" in viewer.output
    assert (await listed())["it"]["pid"] == pid


async def test_input_is_raw_bytes(post: Post, attach: Attach) -> None:
    await post("create", id="raw", shell="sh")
    async with attach("raw") as viewer:
        await viewer.type("stty raw -echo; printf 'rea''dy.'; od -An -tx1 -N256 -v; stty sane\n")
        await viewer.shows("ready.")
        viewer.forget()
        await viewer.type(bytes(range(256)))
        text = await viewer.shows("fe ff")
        assert [int(word, 16) for word in text.split()[:256]] == list(range(256))


async def test_input_before_ready_is_not_lost(http: aiohttp.ClientSession, post: Post) -> None:
    await post("create", id="early", shell="cat")
    async with http.ws_connect("/ws/terminal?terminalId=early") as socket:
        await socket.send_bytes(b"at once\n")
        found = b""
        while found.count(b"at once") < 2:  # echoed, and printed by cat
            message = await socket.receive(10)
            found += message.data if message.type is aiohttp.WSMsgType.BINARY else b""


async def test_a_resize_message_changes_the_size(terminal: str, attach: Attach, listed: Listed) -> None:
    async with attach(terminal) as viewer:
        assert "24 80\r\n" in await viewer.run("stty size")
        await viewer.control(type="resize", cols=132, rows=43)
        assert "43 132\r\n" in await viewer.run("stty size")
        assert ((await listed())["it"]["cols"], (await listed())["it"]["rows"]) == (132, 43)


async def test_a_size_in_the_query_is_set_before_the_replay(
    terminal: str, attach: Attach, listed: Listed
) -> None:
    async with attach(terminal, query="&cols=100&rows=30") as viewer:
        await viewer.told("ready")
        assert ((await listed())["it"]["cols"], (await listed())["it"]["rows"]) == (100, 30)
        assert "30 100\r\n" in await viewer.run("stty size")


@pytest.mark.parametrize(
    "query", ["cols=100", "cols=0&rows=5", "cols=-1&rows=5", "cols=a&rows=b", "cols=9&rows=5e9"]
)
async def test_half_a_size_or_none_changes_nothing(terminal: str, attach: Attach, query: str) -> None:
    async with attach(terminal, query=f"&{query}") as viewer:
        assert "24 80\r\n" in await viewer.run("stty size")


@pytest.mark.parametrize(
    "text", ["", "{", "no", "42", "[]", "null", "{}", '{"type": 7}', "[" * 100_000, '"\\ud800"']
)
async def test_bad_json_is_answered_and_the_socket_stays(terminal: str, attach: Attach, text: str) -> None:
    async with attach(terminal) as viewer:
        await viewer.socket.send_str(text)
        assert await viewer.told("error") == {"type": "error", "message": "Invalid control message"}
        assert "open" in await viewer.run("echo op''en")


@pytest.mark.parametrize(
    "size",
    [
        {},
        {"cols": 0, "rows": 5},
        {"cols": 5, "rows": -1},
        {"cols": "5", "rows": 5},
        {"cols": 5},
        {"cols": 99999, "rows": 5},
    ],
)
async def test_a_bad_size_is_answered_and_the_socket_stays(
    terminal: str, attach: Attach, size: dict[str, Any]
) -> None:
    async with attach(terminal) as viewer:
        await viewer.control(type="resize", **size)
        assert "from 1 to 4096" in (await viewer.told("error"))["message"]
        assert "24 80\r\n" in await viewer.run("stty size")


async def test_a_message_of_an_unknown_type_is_ignored(terminal: str, attach: Attach) -> None:
    async with attach(terminal) as viewer:
        await viewer.control(type="paint", colour="red")
        assert "open" in await viewer.run("echo op''en")
        assert viewer.messages == [{"type": "ready"}]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("exit 3", {"type": "exit", "code": 3}),
        ("exit", {"type": "exit", "code": 0}),
        ("kill -KILL $$", {"type": "exit", "code": 137, "signal": "SIGKILL"}),
    ],
)
async def test_the_end_of_the_shell_is_told_to_all(
    terminal: str, attach: Attach, listed: Listed, line: str, message: dict[str, Any]
) -> None:
    async with attach(terminal) as one, attach(terminal) as two:
        await one.type(f"echo la''st; {line}\r")
        for viewer in (one, two):
            assert await viewer.told("exit") == message
            assert await viewer.closed() == 1000
            assert b"last\r\n" in viewer.output
    assert await listed() == {}


async def test_all_that_a_program_wrote_before_its_end_arrives(post: Post, attach: Attach) -> None:
    for _ in range(5):
        await post("create", id="burst", shell="sh")
        async with attach("burst") as viewer:
            await viewer.type("stty -echo; seq 5000; exit\n")
            assert await viewer.closed() == 1000
            assert b"\r\n4999\r\n5000\r\n" in viewer.output


async def test_after_the_end_the_id_is_unknown_and_a_new_terminal_has_nothing_to_replay(
    terminal: str, attach: Attach, post: Post
) -> None:
    async with attach(terminal) as viewer:
        await viewer.type("echo sec''ret; exit\r")
        await viewer.closed()
    async with attach(terminal) as viewer:
        assert await viewer.closed() == 1008
    await post("create", id="it", shell="bash")
    async with attach(terminal) as viewer:
        assert "secret" not in await viewer.run("true")


async def test_an_unknown_terminal_is_an_error_and_nothing_is_made(attach: Attach, listed: Listed) -> None:
    async with attach("nobody") as viewer:
        assert await viewer.closed() == 1008
        assert viewer.messages == [{"type": "error", "message": "Terminal not found"}]
    assert await listed() == {}


async def test_a_shell_that_ends_at_once_leaves_nothing(post: Post, listed: Listed, runtime: Runtime) -> None:
    await post("create", id="short", shell="true")
    await soon(lambda: runtime.descendants() == {})
    assert await listed() == {}


@pytest.mark.parametrize("path", ["/ws/terminal", "/ws/terminal?terminalId=", "/ws/terminal?terminalid=x"])
async def test_a_missing_id_is_a_400_in_plain_text(http: aiohttp.ClientSession, path: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await http.ws_connect(path)
    assert caught.value.status == 400
    assert caught.value.headers is not None
    assert caught.value.headers["Content-Type"].startswith("text/plain")
    assert caught.value.headers["Access-Control-Allow-Origin"] == "*"


async def test_without_an_upgrade_there_is_nothing(http: aiohttp.ClientSession) -> None:
    for path in ("/ws/terminal?terminalId=x", "/ws/terminal"):
        async with http.get(path) as response:
            assert response.status == 404
            assert (await response.json())["code"] == "UNKNOWN_ERROR"


async def test_half_a_handshake_is_refused(http: aiohttp.ClientSession) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    for headers in (
        {},
        {"Sec-WebSocket-Version": "13"},
        {"Sec-WebSocket-Version": "99", "Sec-WebSocket-Key": "x"},
    ):
        async with http.get("/ws/terminal?terminalId=x", headers=upgrade | headers) as response:
            assert response.status == 400
            assert (await response.json())["code"] == "VALIDATION_FAILED"


async def test_the_upgrade_has_the_headers_of_every_reply(terminal: str, attach: Attach) -> None:
    async with attach(terminal) as viewer:
        headers = viewer.socket._response.headers  # pyright: ignore[reportPrivateUsage]
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert headers["Server"] == "sandpod"
        assert "Sec-WebSocket-Extensions" not in headers
