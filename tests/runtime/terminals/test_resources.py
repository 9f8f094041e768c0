"""Terminals as resources: created, listed, resized and destroyed over HTTP."""

import asyncio
import os
import re
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime, running, soon, unprivileged
from tests.support.terminal import Viewer

Attach = Callable[..., Viewer]
Post = Callable[..., Any]
Listed = Callable[[], Any]


async def test_create_echoes_the_id_and_list_shows_it(post: Post, listed: Listed, runtime: Runtime) -> None:
    made = await post("create", id="mine", cols=100, rows=40)
    assert (made["success"], made["id"], made["created"]) == (True, "mine", True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", made["timestamp"])
    found = (await listed())["mine"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("startedAt"))
    assert found == {
        "id": "mine",
        "pid": made["pid"],
        "cols": 100,
        "rows": 40,
        "viewers": 0,
        "cwd": str(runtime.workspace),
    }
    assert (await post("destroy", id="mine"))["id"] == "mine"
    assert await listed() == {}


async def test_without_an_id_one_is_made(post: Post) -> None:
    made = await post("create", shell="cat")
    assert re.fullmatch(r"terminal-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["id"])
    await post("destroy", id=made["id"])


async def test_an_existing_terminal_is_returned_unchanged(post: Post, terminal: str) -> None:
    first = await post("create", id=terminal)
    again = await post("create", id=terminal, cwd="/tmp", cols=7, rows=7, shell="sh")
    assert (again["pid"], again["cols"], again["rows"], again["created"]) == (first["pid"], 80, 24, False)


async def test_fifty_creates_at_once_start_one_shell(post: Post, runtime: Runtime) -> None:
    made = await asyncio.gather(*(post("create", id="crowd", shell="cat") for _ in range(50)))
    assert len({each["pid"] for each in made}) == 1
    assert [each["created"] for each in made].count(True) == 1
    assert len(runtime.descendants()) == 1
    assert len(runtime.logged("terminal started")) - len(runtime.logged("terminal ended")) == 1


async def test_a_failed_create_fails_all_who_wait_for_it_and_is_over(post: Post, listed: Listed) -> None:
    failed = await asyncio.gather(
        *(post("create", id="crowd", shell="no-such-shell", status=400) for _ in range(20))
    )
    assert {each["code"] for each in failed} == {"VALIDATION_FAILED"}
    assert await listed() == {}
    assert (await post("create", id="crowd", shell="cat"))["created"] is True


async def test_a_creator_who_hangs_up_does_not_fail_the_others(
    http: aiohttp.ClientSession, post: Post, runtime: Runtime
) -> None:
    leaving = [
        asyncio.create_task(http.post("/api/terminal/create", json={"id": "crowd", "shell": "cat"}))
        for _ in range(10)
    ]
    staying = [asyncio.create_task(post("create", id="crowd", shell="cat")) for _ in range(10)]
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    assert len({(await task)["pid"] for task in staying}) == 1
    assert len(runtime.descendants()) == 1
    await asyncio.gather(*leaving, return_exceptions=True)


async def test_destroy_ends_all_that_was_started_there(
    post: Post, terminal: str, attach: Attach, runtime: Runtime
) -> None:
    async with attach(terminal) as viewer:
        await viewer.run(
            "(trap '' HUP TERM; sleep 1231.01) & setsid sleep 1231.02 & nohup sleep 1231.03 >/dev/null 2>&1 &"
        )
        await soon(lambda: all(running(f"sleep 1231.0{number}") for number in (1, 2, 3)))
        await post("destroy", id=terminal)
        assert runtime.descendants() == {}
        assert not running("sleep 1231.0")
        told = await viewer.told("exit")
        assert told["code"] != 0
        assert await viewer.closed() == 1000


async def test_destroy_is_idempotent(post: Post, terminal: str) -> None:
    for _ in range(3):
        assert (await post("destroy", id=terminal))["id"] == terminal
    await asyncio.gather(*(post("destroy", id="never-was") for _ in range(5)))


async def test_destroying_one_leaves_its_siblings(post: Post, terminal: str, attach: Attach) -> None:
    await post("create", id="sibling", shell="cat")
    async with attach(terminal) as viewer:
        await viewer.told("ready")
        await post("destroy", id="sibling")
        assert "alive" in await viewer.run("echo al''ive")


async def test_an_id_is_free_as_soon_as_its_destruction_began(
    post: Post, attach: Attach, runtime: Runtime
) -> None:
    first = await post("create", id="stubborn", shell="bash")
    async with attach("stubborn") as viewer:
        await viewer.run("echo sec''ret")
        await viewer.type("trap '' HUP TERM; exec sleep 1231.07\r")
        await soon(lambda: running("sleep 1231.07"))
        ending = asyncio.create_task(post("destroy", id="stubborn"))
        second = first
        while second["pid"] == first["pid"]:
            second = await post("create", id="stubborn", shell="bash")
        assert second["created"] is True
        async with attach("stubborn") as fresh:
            assert "secret" not in await fresh.run("true")
        await ending
        assert (await viewer.told("exit"))["signal"] == "SIGKILL"
    assert second["pid"] in runtime.descendants()
    assert first["pid"] not in runtime.descendants()


async def test_what_a_shell_left_behind_lives_on_after_its_own_end(
    terminal: str, attach: Attach, runtime: Runtime
) -> None:
    async with attach(terminal) as viewer:
        # Before it has a session of its own, the end of the shell is its end too.
        await viewer.run("setsid -f sh -c ': >away; exec sleep 1231.04' >/dev/null 2>&1")
        await viewer.run("until test -e away; do sleep 0.02; done")
        await viewer.type("exit\r")
        await viewer.closed()
    assert running("sleep 1231.04")
    runtime.end_descendants()


async def test_a_shell_whose_child_keeps_the_terminal_still_ends(
    terminal: str, attach: Attach, runtime: Runtime
) -> None:
    async with attach(terminal) as viewer:
        await viewer.run("(trap '' HUP; exec sleep 1231.05) &")
        await viewer.type("exit 5\r")
        assert await viewer.told("exit") == {"type": "exit", "code": 5}
    runtime.end_descendants()


async def test_resize_over_http(post: Post, terminal: str, attach: Attach) -> None:
    assert (await post("resize", id=terminal, cols=111, rows=22))["id"] == terminal
    async with attach(terminal) as viewer:
        assert "22 111\r\n" in await viewer.run("stty size")
    assert (await post("resize", id="nobody", cols=1, rows=1, status=404))["code"] == "PROCESS_NOT_FOUND"


async def test_cwd_may_be_relative_and_must_be_a_directory_one_can_enter(
    post: Post, listed: Listed, runtime: Runtime
) -> None:
    (runtime.workspace / "inner").mkdir(exist_ok=True)
    await post("create", id="inner", cwd="inner", shell="cat")
    assert (await listed())["inner"]["cwd"] == f"{runtime.workspace}/inner"
    await post("destroy", id="inner")
    for cwd, status, code in (
        ("/no/such/place", 404, "FILE_NOT_FOUND"),
        ("/etc/passwd", 400, "NOT_DIRECTORY"),
        ("/\0", 400, "VALIDATION_FAILED"),
        ("x" * 5000, 400, "VALIDATION_FAILED"),
        ("x" * 300, 400, "NAME_TOO_LONG"),
    ):
        assert (await post("create", cwd=cwd, status=status))["code"] == code
    assert await listed() == {}


@pytest.mark.parametrize(
    "shell",
    [
        "bash -c id",
        "-bash",
        "--login",
        "bin/bash",
        "./bash",
        "/etc",
        "/etc/passwd",
        "ba\0sh",
        "x" * 5000,
        "no-such",
    ],
)
async def test_a_shell_is_one_program_without_options(post: Post, runtime: Runtime, shell: str) -> None:
    found = await post("create", shell=shell, status=400)
    assert found["context"]["validationErrors"][0]["field"] == "shell"
    assert runtime.descendants() == {}


@pytest.mark.parametrize("name", ["", " ", "\t", "a\nb", "\0", "x" * 257, None])
async def test_an_id_is_some_printable_characters(post: Post, name: str | None) -> None:
    for what in ("destroy", "resize"):
        assert (await post(what, id=name, cols=1, rows=1, status=400))["code"] == "VALIDATION_FAILED"
    if name is not None:
        assert (await post("create", id=name, status=400))["code"] == "VALIDATION_FAILED"


@pytest.mark.parametrize("size", [{"cols": 0}, {"rows": -1}, {"cols": 4097}, {"rows": 1.5}, {"cols": "80"}])
async def test_a_size_is_checked(post: Post, size: dict[str, Any]) -> None:
    assert (await post("create", status=400, **size))["code"] == "VALIDATION_FAILED"


async def test_any_program_may_be_the_shell(post: Post, attach: Attach) -> None:
    await post("create", id="echo", shell="/bin/cat")
    async with attach("echo") as viewer:
        await viewer.type("twice\r")
        assert (await viewer.shows("twice\r\ntwice\r\n")).count("twice") == 2
        await viewer.type(b"\x04")
        assert await viewer.closed() == 1000


async def test_the_shell_has_a_terminals_environment_and_no_descriptor_of_ours(
    post: Post, attach: Attach
) -> None:
    await post("create", id="plain", shell="sh")
    async with attach("plain") as viewer:
        text = await viewer.run("echo $TERM; tty; echo $(ls /proc/$$/fd)")
        assert "xterm-256color\r\n" in text
        assert re.search(r"^/dev/pts/\d+\r$", text, re.MULTILINE)
        # 10 is where sh keeps the terminal for itself, 3 the directory that is being listed.
        held = re.search(r"^0 [0-9 ]+", text, re.MULTILINE)
        assert held is not None
        assert set(held[0].split()) <= {"0", "1", "2", "3", "10"}
        assert "SANDPOD" not in await viewer.run("env")


async def test_there_may_be_64(post: Post, listed: Listed, attach: Attach) -> None:
    names = [f"n{number}" for number in range(64)]
    await asyncio.gather(*(post("create", id=name, shell="cat") for name in names))
    refused = await post("create", id="one-more", shell="cat", status=409)
    assert refused["code"] == "RESOURCE_BUSY"
    assert "64 terminals" in refused["message"]
    # An existing one is not one more.
    assert (await post("create", id="n0"))["created"] is False
    async with attach("n63") as viewer:
        await viewer.type("alive\r")
        await viewer.shows("alive\r\nalive")
    await asyncio.gather(*(post("destroy", id=name) for name in names))
    assert (await post("create", id="one-more", shell="cat"))["created"] is True


async def test_sixteen_may_watch_one_and_128_all(
    post: Post, attach: Attach, listed: Listed, runtime: Runtime
) -> None:
    names = [f"n{number}" for number in range(9)]
    await asyncio.gather(*(post("create", id=name, shell="cat") for name in names))
    many = aiohttp.ClientSession(runtime.url, connector=aiohttp.TCPConnector(limit=0))
    viewers = [Viewer(many, f"/ws/terminal?terminalId={name}") for name in names[:8] for _ in range(16)]
    await asyncio.gather(*(viewer.__aenter__() for viewer in viewers))
    for viewer in viewers:
        await viewer.told("ready")
    assert (await listed())["n0"]["viewers"] == 16
    for name, limit in ((names[0], "16 sockets on this terminal"), (names[8], "128 sockets on terminals")):
        async with attach(name) as refused:
            assert limit in (await refused.told("error"))["message"]
            assert await refused.closed() == 1013
    await viewers.pop().__aexit__()
    async with attach(names[8]) as welcome:
        await welcome.told("ready")
    await asyncio.gather(*(viewer.__aexit__() for viewer in viewers))
    await many.close()
    await asyncio.gather(*(post("destroy", id=name) for name in names))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_an_ordinary_user_has_terminals(start: Callable[..., Runtime]) -> None:
    runtime = start(prefix=unprivileged())
    async with aiohttp.ClientSession(runtime.url) as http:
        async with http.post("/api/terminal/create", json={"id": "it", "shell": "bash"}) as response:
            assert response.status == 200
        async with Viewer(http, "/ws/terminal?terminalId=it") as viewer:
            text = await viewer.run("id -u; sleep 1231.06 & jobs; kill %1")
            assert "65534\r\n" in text
            assert "Running" in text


async def test_an_image_without_pseudo_terminals_says_so(start: Callable[..., Runtime]) -> None:
    """In a mount namespace of its own, with nothing in /dev."""
    hide = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9"
    try:
        runtime = start(prefix=["unshare", "--mount", "sh", "-c", f'{hide} && exec "$@"', "sh"])
    except RuntimeError as error:
        pytest.skip(f"this machine lets nobody have a /dev of his own: {error}")
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.post("/api/terminal/create", json={}) as response,
    ):
        found = await response.json()
        assert (response.status, found["code"]) == (500, "PROCESS_ERROR")
        assert "no pseudo-terminal" in found["message"]
        assert "/dev/pts" in found["suggestion"]
