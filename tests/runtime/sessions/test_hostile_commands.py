"""Whatever a command prints, closes, redirects or redefines: its session knows how it ended, and goes on."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime

Sessions = Any

# Each is run, and what comes after it must be as if it had not been there.
HARMLESS = {
    "output closed": "exec >&- 2>&-",
    "output elsewhere": "exec >/dev/null 2>/dev/null; echo never seen",
    "input closed": "exec <&-",
    "input from a terminal that is none": "exec </dev/zero",
    "low descriptors closed": "exec 3>&- 4>&- 5>&- 9>&-",
    "all descriptors closed": 'for n in {3..300}; do eval "exec $n>&-"; done',
    "the script's descriptor closed": "exec 255>&-; exec 254>&-",
    "the script's descriptor used": "exec 255</dev/null 10</dev/null 11</dev/null 12</dev/null",
    "an unclosed quote": "echo 'unterminated",
    "an unclosed double quote": 'echo "unterminated',
    "an unclosed parenthesis": "echo $(echo",
    "an unclosed here-document": "cat <<END\nnever closed",
    "a syntax error": "if then fi",
    "a closing brace": "}",
    "a backslash at the end": "echo a \\",
    "a comment at the end": "echo a # and nothing '\"",
    "break and continue": "break 3; continue 2",
    "return": "return 7",
    "a report of its own": "echo; echo 1; printf '\\n7\\n'; echo '>|s1.0'",
    "an alias for eval": "alias eval='echo no' exec='echo no' builtin='echo no' cd='echo no'",
    "a function eval": "eval() { echo no; }",
    "a function exec": "exec() { echo no; }",
    "a function builtin": "builtin() { echo no; }",
    "a function builtin that calls it": 'builtin() { command builtin "$@"; }',
    "a function command": "command() { echo no; }",
    "functions for all": "for n in cd printf export unset declare shopt set trap read test; do"
    ' eval "$n() { echo no; }"; done',
    "builtins turned off": "enable -n printf",
    "a trap at the end": "trap 'echo bye' EXIT",
    "a trap on errors": "trap 'echo error' ERR; false",
    "a trap on every command": "trap 'echo debug' DEBUG; trap - DEBUG",
    "a trap on returns": "trap 'echo returned' RETURN",
    "a deaf ear for SIGTERM": "trap '' TERM INT HUP PIPE",
    "a signal that is caught": "trap 'echo caught' USR1; kill -USR1 $$",
    "SIGCHLD": "trap 'echo child' CHLD; true & wait",
    "no variables unset": "set -u",
    "no globbing": "set -f",
    "no clobbering": "set -C",
    "tracing": "set -x; true; set +x",
    "tracing to a file": "exec 7>/dev/null; BASH_XTRACEFD=7; set -x",
    "reading aloud": "set -v; true; set +v",
    "job control": "set -m; sleep 0 & wait; set +m",
    "POSIX mode": "set -o posix",
    "POSIX mode by name": "POSIXLY_CORRECT=1",
    "failing pipes": "set -o pipefail",
    "every assignment exported": "set -a",
    "keywords": "set -k",
    "digits in IFS": "IFS=0123456789/",
    "no IFS": "unset IFS",
    "prompts": "PS4='$(echo x)'; PS0='$(echo y)'; PROMPT_COMMAND='echo z'; PS1='$(exit 4)'",
    "BASH_ENV": "export BASH_ENV=/no/such/file ENV=/nor/this",
    "a full SHELLOPTS": "set -o; shopt -s nullglob failglob dotglob extglob nocasematch",
    "what starts a function": "shopt -s extdebug; shopt -u extdebug",
    "readonly variables": "readonly REPLY_; declare -r OLDPWD",
    "no aliases": "shopt -u expand_aliases",
    "no programs": "PATH=/nowhere; hash -r",
    "no environment": "unset ${!P*} ${!H*}",
    "a huge environment": "export BIG=$(head -c 100000 /dev/zero | tr '\\0' x)",
    "exported lines like declarations": "export EVIL='a\ndeclare -x PWD=\"/etc\"\nb'",
    "many variables": "for i in {1..2000}; do export V$i=$i; done",
    "a limit on processes": "ulimit -u 1000",
    "no core": "ulimit -c 0; (kill -SEGV $BASHPID); :",
    "a stack of directories": "pushd /usr; pushd /; dirs",
    "a directory that is gone": "mkdir gone; cd gone; rmdir ../gone; cd /",
    "a coprocess": "coproc cat; exec {COPROC[1]}>&-; wait",
    "a disowned child": "sleep 0.01 & disown -a",
    "a subshell's end": "(exit 9); (exec true); { (kill -9 $BASHPID); }",
    "an error in an expansion": 'echo "$((1 / 0))"',
    "a bad substitution": "echo ${a b}",
    "NULs": "printf '\\0\\0'; head -c 1000 /dev/urandom",
    "a closed pipe": "yes | head -n 1",
    "a long line": "printf '%1000000s' x",
    "umask": "umask 777",
    "LINENO": "LINENO=99999; unset LINENO",
    "RANDOM": "unset RANDOM SECONDS FUNCNAME BASH_LINENO BASH_SOURCE",
}


@pytest.mark.parametrize("command", HARMLESS.values(), ids=HARMLESS)
async def test_the_next_call_is_as_if_nothing_had_been(sessions: Sessions, command: str) -> None:
    await sessions.out("kept=yes")
    await sessions.run(command, timeoutMs=20_000)
    for _ in range(2):
        found = await sessions.run('echo "$kept"; echo err >&2; (\\exit 3)')
        assert found["exitCode"] == 3
        # Traps that it has set go on doing what they do.
        assert found["stdout"].replace("error\n", "").replace("child\n", "") == "yes\n"
        assert found["stderr"].endswith("err\n")
    assert (await sessions.run("\\builtin cd /usr; \\builtin false"))["exitCode"] == 1
    assert (await sessions.get("/api/session/s"))["cwd"] == "/usr"


DEADLY = {
    "commands that are only read": "set -n",
    "a trap that forbids every command": "shopt -s extdebug; trap false DEBUG",
    "no descriptors": "ulimit -n 3; echo x | cat",
    "a readonly function builtin": "builtin() { :; }; readonly -f builtin",
}


@pytest.mark.parametrize("command", DEADLY.values(), ids=DEADLY)
async def test_a_shell_that_does_not_obey_any_more_is_ended_and_that_is_said(
    sessions: Sessions, http: aiohttp.ClientSession, command: str
) -> None:
    found: dict[str, Any] = {}
    async with asyncio.timeout(30):
        # Some damage shows only when the next command comes.
        for text in (command, "true", "true"):
            async with http.post("/api/execute", json={"command": text, "sessionId": "s"}) as response:
                found = await response.json()
            if response.status != 200:
                break
    assert found["code"] == "SESSION_TERMINATED", found
    assert await sessions.out("echo fresh") == "fresh\n"


async def test_what_is_opened_above_the_standard_three_stays_open(
    sessions: Sessions, runtime: Runtime
) -> None:
    await sessions.out('for n in 3 9 10 11 12 13 200; do eval "exec $n>file$n"; done; exec {own}>mine')
    for number in (3, 9, 10, 11, 12, 13, 200):
        await sessions.out(f"echo {number} >&{number}")
    assert await sessions.out("echo mine >&$own; cat file* mine | sort -n | tr '\\n' ' '; rm file* mine") == (
        "mine 3 9 10 11 12 13 200 "
    )


async def test_a_trap_s_output_belongs_to_the_commands_that_caused_it(sessions: Sessions) -> None:
    await sessions.run("trap 'echo debug' DEBUG")
    assert await sessions.out("echo one; echo two") == "debug\none\ndebug\ntwo\n"
    await sessions.run("trap - DEBUG; trap 'echo error' ERR")
    assert (await sessions.run("false"))["stdout"] == "error\n"
    await sessions.run("set -x")
    found = await sessions.run("echo traced")
    assert (found["stdout"], found["stderr"].lstrip("+")) == ("traced\n", " echo traced\n")


async def test_a_command_that_removes_the_fifos_loses_nothing_but_its_session(
    sessions: Sessions, runtime: Runtime
) -> None:
    everything = "$(dirname $(dirname $(readlink /proc/$$/fd/1)))"
    await sessions.run(f"rm -rf {everything}; true", timeoutMs=20_000, status=410)
    assert await sessions.out("echo fresh") == "fresh\n"


async def test_nul_is_refused(sessions: Sessions) -> None:
    assert (await sessions.run("echo \0", status=400))["code"] == "INVALID_COMMAND"
