"""What a command does in a session, and what of it lasts."""

import asyncio
import base64
import json
import time
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime, soon

Sessions = Any


async def test_directory_variables_functions_aliases_options_and_umask_last(sessions: Sessions) -> None:
    await sessions.out(
        "cd /usr; X=plain; export Y=exported; f() { echo f $1; }; alias ll='echo aliased'; umask 027\n"
        "set -o pipefail; shopt -s extglob; a=(1 '2 3'); declare -A m=([k]='v w'); set -- one two"
    )
    assert (
        await sessions.out(
            'pwd; echo $X; sh -c "echo \\$Y"; f 1; ll; umask; false | true; echo $?\n'
            'echo "${a[1]} ${m[k]} $2"\n'
            "case aab in +(a|b)) echo extglob;; esac"
        )
        == "/usr\nplain\nexported\nf 1\naliased\n0027\n1\n2 3 v w two\nextglob\n"
    )
    assert await sessions.out('echo "${X-}${Y-}"; type -t f ll || true', session="t") == "\n"


async def test_a_directory_that_was_entered_counts_for_what_others_do_in_the_session(
    sessions: Sessions, runtime: Runtime
) -> None:
    await sessions.out("mkdir -p deep; cd deep")
    assert (await sessions.get("/api/session/s"))["cwd"] == f"{runtime.workspace}/deep"
    await sessions.out("cd ..; rmdir deep")


@pytest.mark.parametrize("text", ["a", "a\n", "", "\0\xff", "\n\n"])
async def test_output_is_exact(sessions: Sessions, text: str) -> None:
    octal = "".join(f"\\{ord(each):03o}" for each in text)
    found = await sessions.run(f"printf '{octal}'; printf '{octal}' >&2", outputEncoding="base64")
    for name in ("stdout", "stderr"):
        assert base64.b64decode(found[name]) == text.encode("latin-1")


async def test_many_megabytes_come_whole(sessions: Sessions) -> None:
    found = await sessions.run("head -c 9000000 /dev/zero | tr '\\0' x; echo end")
    assert found["stdout"] == "x" * 9_000_000 + "end\n"
    found = await sessions.run("head -c 9000000 /dev/zero", maxOutputBytes=1000)
    assert found["stdoutCut"]["bytes"] == 9_000_000 - 1000


async def test_input_is_empty(sessions: Sessions) -> None:
    assert await sessions.out('cat; read x || echo "nothing $x"; wc -c') == "nothing \n0\n"


async def test_huge_commands_run(sessions: Sessions) -> None:
    for size in (3000, 5000, 100_000, 3_000_000):
        assert await sessions.out(f"cat <<'END' | wc -c\n{'é' * (size // 2)}\nEND") == f"{size + 1}\n"


async def test_here_documents_and_scripts_run_unchanged(sessions: Sessions) -> None:
    script = """for i in 1 2; do
  cat <<EOF
$i 'quoted' "double" \\$HOME `echo back`
EOF
done
if true; then echo "multi
line"; fi # a comment"""
    expected = "1 'quoted' \"double\" $HOME back\n2 'quoted' \"double\" $HOME back\nmulti\nline\n"
    assert await sessions.out(script) == expected


async def test_variables_of_a_call_are_gone_after_it(sessions: Sessions) -> None:
    await sessions.out("PLAIN=old; export EXPORTED=old")
    env = {"PLAIN": "new", "EXPORTED": "it's", "UNSET": "x\ny", "NULL": None, "PATH": "/usr/bin:/bin"}
    show = 'echo "$PLAIN,$EXPORTED,${UNSET-unset},${NULL-null}"; sh -c \'echo "${PLAIN-}"\''
    assert await sessions.out(show, env=env) == "new,it's,x\ny,null\nnew\n"
    assert await sessions.out(show) == "old,old,unset,null\n\n"


async def test_names_that_a_shell_cannot_have_are_refused(sessions: Sessions) -> None:
    found = await sessions.run("true", status=500, env={"a-b": "x"})
    assert found["code"] == "COMMAND_EXECUTION_ERROR"
    assert "a-b" in found["message"]


async def test_the_directory_of_a_call_is_left_after_it(sessions: Sessions, runtime: Runtime) -> None:
    await sessions.out("mkdir -p here real; ln -sfn real link; cd link; OLDPWD=/before")
    assert await sessions.out("pwd; cd /etc", cwd="/usr") == "/usr\n"
    assert await sessions.out("pwd", cwd="../here") == f"{runtime.workspace}/here\n"
    assert await sessions.out("pwd; echo $OLDPWD") == f"{runtime.workspace}/link\n/before\n"
    assert (await sessions.run("cd /usr; false", cwd="/"))["exitCode"] == 1
    assert await sessions.out("pwd; cd ..; rm -r here real link") == f"{runtime.workspace}/link\n"


@pytest.mark.parametrize("cwd", ["/no/such", "nor/this", "-", "/etc/passwd"])
async def test_a_bad_directory_keeps_the_command_from_running(sessions: Sessions, cwd: str) -> None:
    for before in ("true", "set -e"):
        await sessions.out(before)
        found = await sessions.run("echo ran", cwd=cwd)
        assert (found["exitCode"], found["success"], found["stdout"]) == (1, False, "")
        assert "directory" in found["stderr"].lower()
    assert await sessions.out("echo fine") == "fine\n"


async def test_changes_of_the_environment_reach_sessions_that_are_there(sessions: Sessions) -> None:
    await sessions.out("export MINE=1; readonly FIXED=1; set -e")
    try:
        await sessions.post("/api/environment", set={"EVERYBODYS": "a'b\nc", "FIXED": "2"}, unset=["MINE"])
        assert await sessions.out('echo "$EVERYBODYS"; sh -c \'echo "$EVERYBODYS"\'') == "a'b\nc\n" * 2
        assert await sessions.out('echo "${MINE-gone} $FIXED"') == "gone 1\n"
    finally:
        await sessions.post("/api/environment", unset=["EVERYBODYS", "FIXED"])


async def test_calls_to_one_session_never_mix_and_run_in_order(sessions: Sessions) -> None:
    await sessions.out("n=0")
    calls = [
        asyncio.create_task(sessions.out(f"x=$n; sleep 0.01; echo {number} $x; n=$((x + 1))"))
        for number in range(12)
    ]
    turns = [int(line.split()[1]) for line in await asyncio.gather(*calls)]
    assert sorted(turns) == list(range(12))


async def test_two_sessions_run_at_the_same_time(sessions: Sessions, runtime: Runtime) -> None:
    fifo = runtime.workspace / "meet"
    await sessions.out(f"mkfifo {fifo}")
    sender = asyncio.create_task(sessions.out(f"echo met > {fifo}; echo sent"))
    assert await sessions.out(f"cat {fifo}; rm {fifo}", session="t") == "met\n"
    assert await sender == "sent\n"


async def test_a_background_child_neither_delays_nor_disturbs_nor_dies(
    sessions: Sessions, runtime: Runtime
) -> None:
    mark = runtime.workspace / "survived"
    begun = time.monotonic()
    child = f"(sleep 0.3; echo late; echo late >&2; head -c 300000 /dev/zero; : > {mark}; sleep 47.0161) &"
    assert await sessions.out(f"{child} echo now") == "now\n"
    assert time.monotonic() - begun < 10
    assert await sessions.out("echo next") == "next\n"
    await soon(mark.exists)
    assert await sessions.out("echo still; jobs | wc -l; rm survived") == "still\n1\n"


async def test_a_hang_up_leaves_the_command_running_and_the_session_busy(
    sessions: Sessions, runtime: Runtime, http: aiohttp.ClientSession
) -> None:
    fifo = runtime.workspace / "go"
    await sessions.out(f"mkfifo {fifo}")
    body = json.dumps({"command": f"X=1; read line < {fifo}; echo to nobody", "sessionId": "s"})
    call = asyncio.create_task(http.post("/api/execute", data=body).__aenter__())
    await sessions.shows(state="busy")
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    waiting = asyncio.create_task(sessions.out("echo $X; rm go"))
    await sessions.shows(waiting=1)
    await sessions.post("/api/execute", command=f"echo > {fifo}")
    assert await waiting == "1\n"


async def test_a_call_that_hangs_up_while_it_waits_never_runs(
    sessions: Sessions, runtime: Runtime, http: aiohttp.ClientSession
) -> None:
    fifo = runtime.workspace / "go"
    await sessions.out(f"mkfifo {fifo}; n=0")
    first = asyncio.create_task(sessions.out(f"read line < {fifo}"))
    await sessions.shows(state="busy")
    body = json.dumps({"command": "n=1", "sessionId": "s"})
    call = asyncio.create_task(http.post("/api/execute", data=body).__aenter__())
    await sessions.shows(waiting=1)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await sessions.shows(waiting=0)
    await sessions.post("/api/execute", command=f"echo > {fifo}")
    await first
    assert await sessions.out("echo $n; rm go") == "0\n"


async def test_a_process_begins_in_the_state_of_its_session(sessions: Sessions) -> None:
    await sessions.out("cd /usr; X='a b'; f() { echo \"$X $(pwd)\"; }; alias say='f'")
    started = await sessions.post(
        "/api/process/start", command="say; X=2; sleep 0.1; echo end", sessionId="s"
    )
    found = await sessions.post(f"/api/process/{started['processId']}/wait", **{"for": "exit"})
    assert found["exitCode"] == 0, found
    assert (await sessions.get(f"/api/process/{started['processId']}/logs"))["stdout"] == "a b /usr\nend\n"
    assert await sessions.out("echo $X") == "a b\n"


async def test_a_readonly_variable_in_env_keeps_the_command_from_running(sessions: Sessions) -> None:
    await sessions.out("readonly FIXED=1; list=(a b); declare -i number=3; set -e")
    found = await sessions.run("echo ran", env={"FIXED": "2", "OTHER": "x"})
    assert (found["exitCode"], found["stdout"]) == (1, "")
    assert "FIXED" in found["stderr"]
    env = {"list": "text", "number": "no number"}
    assert await sessions.out('echo "$list $number"', env=env) == "text no number\n"
    assert await sessions.out('echo "${list[1]} ${OTHER-unset}"; number+=1; echo $number') == "b unset\n4\n"


async def test_the_processes_of_a_session_end_with_it(sessions: Sessions, runtime: Runtime) -> None:
    ids: list[str] = []
    for session in ("s", "t"):
        command = "setsid sleep 50.0161 & sleep 50.0162"
        found = await sessions.post("/api/process/start", command=command, sessionId=session)
        ids.append(found["processId"])
    await sessions.delete("s")
    await sessions.post(f"/api/process/{ids[0]}/wait", **{"for": "exit"})
    await sessions.run("sleep 9", session="t", status=500, timeoutMs=100)
    await sessions.post(f"/api/process/{ids[1]}/wait", **{"for": "exit"})
    assert runtime.descendants() == {}


async def test_a_state_too_large_to_tell_leaves_the_session_as_it_is(sessions: Sessions) -> None:
    await sessions.out("big=$(head -c 9000000 /dev/zero | tr '\\0' x)")
    found = await sessions.post("/api/process/start", 409, command="true", sessionId="s")
    assert found["code"] == "RESOURCE_BUSY"
    assert await sessions.out("echo ${#big}; unset big") == "9000000\n"
    await sessions.post("/api/process/start", command="true", sessionId="s")
