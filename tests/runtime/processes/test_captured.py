"""Programs that the runtime runs for itself, with what they wrote."""

import asyncio
import contextlib
import os

import pytest
from sandpod_runtime.process.captured import captured
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.spawn import Program, SpawnError

from tests.support.runtime import running, soon


def shell(line: str) -> Program:
    return Program(
        path="/bin/sh", arguments=["sh", "-c", line], environ={"PATH": os.environ["PATH"]}, directory="/"
    )


async def test_a_program_is_captured_with_its_exit_code() -> None:
    heard: list[bytes] = []
    commands = Commands(open_files=None)
    found = await captured(
        commands, shell("echo out; echo err >&2; exit 3"), timeout=None, limit=100, on_stderr=heard.append
    )
    assert (found.exit_code, found.stdout, found.stderr) == (3, b"out\n", b"err\n")
    assert not found.cut
    assert heard == [b"err\n"]


async def test_no_more_is_kept_than_was_asked_for() -> None:
    found = await captured(
        Commands(open_files=None),
        shell("head -c 1000000 /dev/zero; echo 12345678901 >&2"),
        timeout=9,
        limit=10,
    )
    assert (found.stdout, found.stderr) == (bytes(10), b"1234567890")
    assert found.cut


async def test_a_timeout_is_told() -> None:
    found = await captured(Commands(open_files=None), shell("echo a; sleep 133.0125"), timeout=0.1, limit=10)
    assert (found.timed_out, found.stdout) == (True, b"a\n")


async def test_a_caller_that_is_cancelled_ends_the_program_and_its_children() -> None:
    commands = Commands(open_files=None)
    call = asyncio.create_task(captured(commands, shell("sleep 133.0127 & wait"), timeout=None, limit=10))
    await soon(lambda: running("sleep 133.0127"))
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    await soon(lambda: not running("sleep 133.0127") and len(commands) == 0)


async def test_a_program_that_is_not_there_is_an_error_of_its_own() -> None:
    program = Program(path="/no/such", arguments=["such"], environ={}, directory="/")
    with pytest.raises(SpawnError, match="/no/such"):
        await captured(Commands(open_files=None), program, timeout=None, limit=10)
