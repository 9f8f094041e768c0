"""A terminal is a real one: job control, signals from keys, and programs that draw the whole screen."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.runtime import Runtime, running, soon
from tests.support.terminal import PROMPT, Viewer

Attach = Callable[..., Viewer]
Post = Callable[..., Any]

CTRL_C, CTRL_D, CTRL_Z, ESCAPE = "\x03", "\x04", "\x1a", "\x1b"


@pytest.fixture(params=["bash", "sh"])
def shell(request: pytest.FixtureRequest) -> str:
    return request.param


def in_front(runtime: Runtime, line: str) -> bool:
    """Whether this runs, and keys go to it."""
    for pid, found in runtime.descendants().items():
        if found == line:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            state, group, front = stat[0], stat[2], stat[5]
            return group == front and state != "T"
    return False


async def test_a_job_is_stopped_continued_and_interrupted(
    post: Post, attach: Attach, runtime: Runtime, shell: str
) -> None:
    await post("create", id="jobs", shell=shell)
    async with attach("jobs") as viewer:
        await viewer.told("ready")
        await viewer.type("sleep 1132.01\r")
        await soon(lambda: in_front(runtime, "sleep 1132.01"))
        await viewer.type(CTRL_Z)
        await viewer.shows("Stopped")
        text = await viewer.run("jobs")
        assert "sleep 1132.01" in text
        viewer.forget()
        await viewer.type("fg\r")
        await soon(lambda: in_front(runtime, "sleep 1132.01"))
        await viewer.type(CTRL_C)
        await soon(lambda: not running("sleep 1132.01"))
        assert "alive" in await viewer.run("echo al''ive")


async def test_a_key_interrupts_the_job_in_the_foreground_only(
    post: Post, attach: Attach, runtime: Runtime
) -> None:
    await post("create", id="jobs", shell="bash")
    async with attach("jobs") as viewer:
        await viewer.run("sleep 1132.02 &")
        await viewer.type("cat\r")
        await soon(lambda: in_front(runtime, "cat"))
        await viewer.type(CTRL_C)
        await soon(lambda: "cat" not in runtime.descendants().values())
        assert running("sleep 1132.02")
        viewer.forget()
        await viewer.type("fg\r")
        await soon(lambda: in_front(runtime, "sleep 1132.02"))
        await viewer.type("\x1c")
        await viewer.shows("Quit")


async def test_a_job_in_the_background_that_reads_is_stopped(post: Post, attach: Attach) -> None:
    await post("create", id="jobs", shell="bash")
    async with attach("jobs") as viewer:
        await viewer.run("cat &")
        async with asyncio.timeout(20):
            while "Stopped" not in await viewer.run("jobs"):
                pass  # it has not come so far yet; each look takes a turn of the shell


async def test_the_program_in_front_is_told_of_a_new_size(post: Post, attach: Attach) -> None:
    await post("create", id="size", shell="bash")
    async with attach("size") as viewer:
        await viewer.told("ready")
        loop = "trap 'stty size' WINCH; while :; do echo wai''ting; sleep 0.1; done"
        await viewer.type(f'sh -c "{loop}"\r')
        await viewer.shows("waiting")
        await viewer.control(type="resize", cols=77, rows=33)
        await viewer.shows("33 77\r\n")


async def test_an_erased_character_is_a_whole_one(post: Post, attach: Attach) -> None:
    await post("create", id="utf8", shell="cat")
    async with attach("utf8") as viewer:
        await viewer.type("aé\x7fb\r")
        await viewer.shows("\r\nab\r\n")


async def test_vim_edits_a_file(post: Post, attach: Attach, runtime: Runtime) -> None:
    editor = _installed("vim", "vi")
    await post("create", id="vim", shell="bash")
    async with attach("vim") as viewer:
        await viewer.run(f"PS1='{PROMPT}'")
        await viewer.type(f"{editor} text\r")
        await viewer.shows("~")
        await viewer.type(f"ihello{ESCAPE}")
        await viewer.prompt(":wq\r")
        path = runtime.workspace / "text"
        assert path.read_text() == "hello\n"
        assert "back" in await viewer.run("echo ba''ck")


async def test_less_pages(post: Post, attach: Attach) -> None:
    pager = _installed("less")
    await post("create", id="less", shell="bash")
    async with attach("less") as viewer:
        await viewer.run(f"PS1='{PROMPT}'")
        await viewer.type(f"seq $((2 * 500)) | {pager}\r")
        assert "1000" not in await viewer.shows("23")
        await viewer.type("G")
        await viewer.shows("1000")
        await viewer.prompt("q")
        assert "back" in await viewer.run("echo ba''ck")


async def test_top_draws_and_leaves(post: Post, attach: Attach) -> None:
    top = _installed("top")
    await post("create", id="top", shell="bash")
    async with attach("top") as viewer:
        await viewer.run(f"PS1='{PROMPT}'")
        await viewer.type(f"{top}\r")
        await viewer.shows("PID")
        await viewer.prompt("q")
        assert "back" in await viewer.run("echo ba''ck")


def _installed(*names: str) -> str:
    for name in names:
        if shutil.which(name):
            return name
    pytest.skip(f"{' or '.join(names)} is not installed on this machine")
