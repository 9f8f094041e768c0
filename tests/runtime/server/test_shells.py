"""Images of every kind: with bash, with only sh, and with no shell at all."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs a mount namespace, in which programs can be hidden",
)


def hiding(tmp_path: Path, *programs: str) -> list[str]:
    """Starts a command in a place where these programs are not executable."""
    nothing = tmp_path / "nothing"
    nothing.touch(mode=0o644)
    mounts = "; ".join(f"mount --bind {nothing} {Path(program).resolve()}" for program in programs)
    return ["unshare", "--mount", "sh", "-c", f'{mounts}; exec "$@"', "--"]


async def run(runtime: Runtime, path: str, body: dict[str, Any]) -> dict[str, Any]:
    async with aiohttp.ClientSession(runtime.url) as http, http.post(path, json=body) as response:
        return await response.json()


async def test_bash_runs_commands_where_it_is(start: Callable[..., Runtime]) -> None:
    found = await run(start(), "/api/execute", {"command": "[[ -n $BASH_VERSION ]] && echo $0"})
    assert found["stdout"] == "bash\n"


async def test_sh_runs_commands_where_there_is_no_bash(start: Callable[..., Runtime], tmp_path: Path) -> None:
    runtime = start(prefix=hiding(tmp_path, "/bin/bash"))
    found = await run(runtime, "/api/execute", {"command": 'echo "$0 $BASH_VERSION"; exit 3'})
    assert (found["stdout"], found["exitCode"]) == ("sh \n", 3)
    long = f"cat <<'EOF' | wc -c\n{'x' * 300_000}\nEOF\nexit 4"
    found = await run(runtime, "/api/execute", {"command": long})
    assert (found["stdout"], found["exitCode"]) == ("300001\n", 4)
    found = await run(runtime, "/api/execute", {"command": "setsid sleep 37.0125", "timeoutMs": 200})
    assert found["exitCode"] == 124
    assert runtime.descendants() == {}


@pytest.fixture
def shell_less(start: Callable[..., Runtime], tmp_path: Path) -> Runtime:
    return start(
        prefix=hiding(tmp_path, "/bin/bash", "/bin/sh"), environ={"PATH": "/usr/bin:/bin", "HOME": "/root"}
    )


async def test_without_a_shell_a_program_and_its_words_run(shell_less: Runtime) -> None:
    found = await run(shell_less, "/api/execute", {"command": "printf '%s,' 'two words' three"})
    assert (found["stdout"], found["exitCode"]) == ("two words,three,", 0)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo $HOME", "no shell"),
        ("ls | wc", "no shell"),
        ("no-such-program", "not a program on its PATH"),
        ("echo 'unterminated", "not a list of words"),
        ("''", "not a program"),
    ],
)
async def test_without_a_shell_what_needs_one_is_refused_and_says_so(
    shell_less: Runtime, command: str, reason: str
) -> None:
    for path, code in (
        ("/api/execute", "COMMAND_EXECUTION_ERROR"),
        ("/api/execute/stream", "STREAM_START_ERROR"),
    ):
        found = await run(shell_less, path, {"command": command})
        assert (found["code"], found["httpStatus"]) == (code, 500)
        assert "no shell" in found["message"]
        assert reason in found["message"]
