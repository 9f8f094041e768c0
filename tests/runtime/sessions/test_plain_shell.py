"""Sessions where there is no bash: what is kept, and what is said; and where there is no shell at all."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import TERMINATED, Runtime

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs a mount namespace, in which programs can be hidden",
)


@pytest.fixture
def without(start: Callable[..., Runtime], tmp_path: Path) -> Callable[..., Runtime]:
    """A runtime in a place where these programs are not executable."""

    def build(*programs: str, **options: Any) -> Runtime:
        nothing = tmp_path / "nothing"
        nothing.touch(mode=0o644)
        mounts = "; ".join(f"mount --bind {nothing} {Path(program).resolve()}" for program in programs)
        prefix = ["unshare", "--mount", "sh", "-c", f'{mounts}; exec "$@"', "--"]
        return start(prefix=prefix, environ={"PATH": "/usr/bin:/bin", "HOME": "/root"}, **options)

    return build


async def post(runtime: Runtime, path: str, **body: Any) -> dict[str, Any]:
    async with aiohttp.ClientSession(runtime.url) as http, http.post(path, json=body) as response:
        found: dict[str, Any] = await response.json()
        return found


async def run(runtime: Runtime, command: str, **fields: Any) -> tuple[str, int]:
    found = await post(runtime, "/api/execute", command=command, sessionId="s", **fields)
    return (found["stdout"], found["exitCode"]) if "stdout" in found else (found["code"], found["httpStatus"])


async def test_a_plain_shell_says_what_it_is_and_keeps_what_it_can(without: Callable[..., Runtime]) -> None:
    runtime = without("/bin/bash")
    found = await post(runtime, "/api/session/create", id="s")
    assert found["shell"] == "sh"
    assert "no bash" in found["note"]
    await run(runtime, "cd /usr; x=\"it's\"; export E=1; f() { echo f$1; }; alias ll='echo ll'; umask 027")
    assert await run(runtime, 'pwd; echo "$x"; sh -c "echo \\$E"; f 2; ll; umask; (exit 4)') == (
        "/usr\nit's\n1\nf2\nll\n0027\n",
        4,
    )
    assert await run(runtime, "pwd; echo $E", cwd="/etc", env={"E": "2"}) == ("/etc\n2\n", 0)
    assert await run(runtime, "pwd; echo $E") == ("/usr\n1\n", 0)
    assert await run(runtime, "true", cwd="/no/such") == ("", 1)
    for command in (
        "echo 'unterminated",
        "exec >&-; exec 3>&-",
        "command() { :; }",
        "if",
        "set -u; IFS=0123456789; set -f",
    ):
        await run(runtime, command)
        assert await run(runtime, 'echo "$x"') == ("it's\n", 0)
    assert await run(runtime, f"cat <<'E' | wc -c\n{'x' * 500_000}\nE") == ("500001\n", 0)
    assert await run(runtime, "exit 6") == ("SESSION_TERMINATED", 410)
    assert await run(runtime, "echo ${x-fresh}") == ("fresh\n", 0)
    assert (await run(runtime, "sleep 9", timeoutMs=100))[1] == 500
    assert await run(runtime, "true") == ("SESSION_TERMINATED", 410)


async def test_a_plain_shell_is_saved_and_given_to_processes(
    without: Callable[..., Runtime], tmp_path: Path
) -> None:
    state = ["--state", str(tmp_path / "state")]
    runtime = without("/bin/bash", arguments=state)
    await run(
        runtime, "cd /usr; x=\"it's\"; export E='a\nb'; readonly R=1; alias ll='echo ll'; umask 027; set -f"
    )
    started = await post(runtime, "/api/process/start", command='echo "$x $E"; pwd', sessionId="s")
    await post(runtime, f"/api/process/{started['processId']}/wait", **{"for": "exit"})
    url = f"{runtime.url}/api/process/{started['processId']}/logs"
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        assert (await response.json())["stdout"] == "it's a\nb\n/usr\n"
    assert runtime.stop() == TERMINATED
    again = without("/bin/bash", arguments=state)
    assert await run(again, 'echo "$x $E $R"; pwd; ll; umask; echo /*') == (
        "it's a\nb 1\n/usr\nll\n0027\n/*\n",
        0,
    )


async def test_without_a_shell_there_is_no_session_and_that_is_said(without: Callable[..., Runtime]) -> None:
    runtime = without("/bin/bash", "/bin/sh")
    found = await post(runtime, "/api/session/create", id="s")
    assert (found["code"], found["httpStatus"]) == ("INTERNAL_ERROR", 500)
    assert "no shell" in found["message"]
