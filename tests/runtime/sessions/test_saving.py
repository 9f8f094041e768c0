"""Sessions over a sleep: what they keep, what they say they lost, and files that are none of ours."""

import base64
import hashlib
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import TERMINATED, Runtime

Start = Callable[..., Runtime]


@asynccontextmanager
async def speaking(runtime: Runtime) -> AsyncGenerator[Callable[..., Awaitable[dict[str, Any]]]]:
    async with aiohttp.ClientSession(runtime.url) as http:

        async def call(path: str, status: int = 200, **body: Any) -> dict[str, Any]:
            request = http.post(path, json=body) if body or "/session/" not in path else http.post(path)
            async with request as response:
                found: dict[str, Any] = await response.json()
                assert response.status == status, found
                return found

        yield call


async def run(runtime: Runtime, command: str, session: str = "s") -> str:
    async with speaking(runtime) as call:
        found = await call("/api/execute", command=command, sessionId=session)
    assert (found["exitCode"], found["stderr"]) == (0, ""), found
    return found["stdout"]


async def show(runtime: Runtime, session: str = "s") -> dict[str, Any]:
    async with aiohttp.ClientSession(runtime.url) as http, http.get(f"/api/session/{session}") as response:
        found: dict[str, Any] = await response.json()
        return found


STATE = r"""cd /usr/lib; umask 027; set -o pipefail; set -f; shopt -s extglob nullglob
export EXPORTED="it's \"a\" \$b
two lines"; plain=$'tab\there'; readonly FIXED=1; declare -rx BOTH='x y'; declare -i number=7
declare -l low=ABC
list=(one 'two three' [7]=far); declare -A map=([key]=value ['odd "key"']='$(no)'); unset PAGER; IFS=:
alias ll='echo "aliased"'; set -- first 'second one'
dirs -c; pushd -n /usr >/dev/null; pushd -n "/no such place" >/dev/null
"""
FUNCTIONS = """g() { case $1 in +(a|b)) echo "matched $1";; esac; }; f() { local x=$1; cat <<END
here $x
END
}; export -f f"""
SHOW = r"""pwd; umask; set +o | grep -c -e '-o pipefail' -e '-o noglob'; echo "$EXPORTED,$plain,$low"
number+=1; echo $number; echo "${list[7]}" "${#list[@]}" "${map[key]}" "${map[odd "key"]}"; ll; echo $# "$2"
g ab; f ab; bash -c 'f b; echo "$EXPORTED"'; declare -p FIXED BOTH; printf %q "$IFS"
printf '%s,' "${DIRSTACK[@]}"
"""


async def test_a_session_is_as_it_was_after_a_restart(start: Start, tmp_path: Path) -> None:
    state = ["--state", str(tmp_path / "state")]
    first = start(arguments=state)
    await run(first, STATE)
    await run(first, FUNCTIONS)
    expected = await run(first, SHOW)
    await run(first, STATE.replace("readonly FIXED=1; declare -rx BOTH='x y';", ""))
    assert "matched ab\nhere ab" in expected
    assert first.stop() == TERMINATED

    second = start(arguments=state, workspace=first.workspace if first.workspace.exists() else None)
    found = await show(second)
    assert (found["state"], found["cwd"], found["missing"]) == ("saved", "/usr/lib", [])
    async with speaking(second) as call:
        assert (await call("/api/session/create", 409, id="s"))["code"] == "SESSION_ALREADY_EXISTS"
    assert second.descendants() == {}
    assert await run(second, SHOW) == expected
    assert (await show(second))["missing"] == []
    async with speaking(second) as call:
        assert (await call("/api/execute", command="FIXED=2", sessionId="s"))["exitCode"] == 1
        await call("/api/session/delete", sessionId="s")
    assert second.stop() == TERMINATED
    assert (await show(start(arguments=state)))["code"] == "UNKNOWN_ERROR"


async def test_what_cannot_be_saved_is_listed(start: Start, tmp_path: Path) -> None:
    runtime = start(arguments=["--state", str(tmp_path / "state")])
    await run(runtime, "trap 'echo bye' EXIT; trap : USR1; exec 7>/dev/null; ulimit -n 99; sleep 48.0161 &")
    async with speaking(runtime) as call:
        found = await call("/api/session/save")
        assert found["persistent"] is True
        assert found["sessions"] == [
            {
                "id": "s",
                "lost": [
                    "traps: EXIT, SIGUSR1",
                    "open descriptors: 7",
                    "limits: Max open files",
                    "processes in the background: 1",
                ],
            }
        ]
    files = list((tmp_path / "state" / "sessions").iterdir())
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600]
    runtime.stop()
    again = start(arguments=["--state", str(tmp_path / "state")])
    assert "traps: EXIT, SIGUSR1" in (await show(again))["missing"]


async def test_sessions_saved_at_once_do_not_count_each_other_s_helpers(start: Start, tmp_path: Path) -> None:
    runtime = start(arguments=["--state", str(tmp_path / "state")])
    names = [f"s{number}" for number in range(12)]
    for name in names:
        await run(runtime, ":", session=name)
    async with speaking(runtime) as call:
        for _ in range(4):
            found = await call("/api/session/save")
            assert found["sessions"] == [{"id": name, "lost": []} for name in names]


async def test_a_busy_session_is_saved_with_what_is_known_without_it(start: Start, tmp_path: Path) -> None:
    runtime = start(arguments=["--state", str(tmp_path / "state")])
    await run(runtime, "cd /usr; export KNOWN=yes; unknown=yes")
    async with aiohttp.ClientSession(runtime.url) as http:
        body = {"command": "echo > started; sleep 49.0161", "sessionId": "s", "cwd": str(runtime.workspace)}
        with pytest.raises(TimeoutError):
            await http.post("/api/execute", json=body, timeout=aiohttp.ClientTimeout(total=1))
    assert (await show(runtime))["state"] == "busy"
    runtime.stop()
    again = start(arguments=["--state", str(tmp_path / "state")])
    assert "a command was running" in (await show(again))["missing"][0]
    assert await run(again, 'echo "$KNOWN ${unknown-lost}"') == "yes lost\n"


async def test_what_a_new_shell_refuses_is_told(start: Start, tmp_path: Path) -> None:
    state = ["--state", str(tmp_path / "state")]
    runtime = start(arguments=state)
    await run(runtime, "mkdir here; cd here; X=1")
    runtime.stop()
    [file] = (tmp_path / "state" / "sessions").iterdir()
    saved = json.loads(file.read_text())
    script = base64.b64decode(saved["script"]) + b"no_such_builtin 1\n"
    file.write_text(json.dumps(saved | {"script": base64.b64encode(script).decode()}))
    again = start(arguments=state)
    assert await run(again, "echo $X") == "1\n"
    assert "no_such_builtin: command not found" in str((await show(again))["missing"])


BAD = {
    "nothing": b"",
    "no JSON": b"\xff\0{",
    "an array": b"[]",
    "too deep": b"[" * 100_000,
    "another version": b'{"version":2}',
    "half a file": b'{"version":1,"id":"s","shell":"bash","directory":"Lw==","environ":[],"scr',
}


def saved(**changes: Any) -> bytes:
    whole = {
        "version": 1,
        "id": "s",
        "shell": "bash",
        "directory": "L3Vzcg==",
        "environ": ["QT0x"],
        "script": "",
        "lost": [],
        "timeout": None,
        "savedAt": "",
    }
    return json.dumps(whole | changes).encode()


async def test_files_that_hold_no_session_are_reported_and_harm_nobody(start: Start, tmp_path: Path) -> None:
    def name(session: str) -> str:
        return hashlib.sha256(session.encode()).hexdigest() + ".json"

    folder = tmp_path / "state" / "sessions"
    folder.mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    for number, data in enumerate(BAD.values()):
        (folder / f"bad{number}.json").write_bytes(data)
    (folder / "wrong-name.json").write_bytes(saved())
    (folder / name("relative")).write_bytes(saved(id="relative", directory="Li4="))
    (folder / name("environ")).write_bytes(saved(id="environ", environ=["PQ=="]))
    (folder / name("late")).write_bytes(saved(id="late", timeout=-1))
    (folder / name("blank ")).write_bytes(saved(id="blank "))
    (folder / name("exits")).write_bytes(saved(id="exits", script="ZXhpdCAz"))
    (folder / name("good")).write_bytes(saved(id="good"))
    os.mkfifo(folder / "fifo.json")
    (folder / "directory.json").mkdir()
    (folder / "link.json").symlink_to("/etc/passwd")
    with (folder / "huge.json").open("wb") as file:
        file.truncate(1 << 30)

    runtime = start(arguments=["--state", str(tmp_path / "state")])
    async with speaking(runtime) as call:
        found = await call("/api/session/restore")
        assert sorted(found["restored"]) == ["blank ", "exits", "good"]
        assert len(found["problems"]) == len(BAD) + 8
        assert await run(runtime, "echo $A; pwd", "good") == "1\n/usr\n"
        assert (await call("/api/execute", 410, command="true", sessionId="exits"))["context"][
            "exitCode"
        ] == 3
        assert await run(runtime, "echo fresh", "exits") == "fresh\n"
    assert runtime.failures() == []
