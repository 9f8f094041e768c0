"""A long-lived session against a bash that runs the same lines: same output, same exit codes."""

import json
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.runtime import Runtime

# None of them ends the shell; most leave something behind for the next.
SNIPPETS = (
    "x=$((x + 1)); echo $x",
    "f() { echo f$x; return 3; }; f",
    "type -t f; f",
    "unset -f f",
    "cd /; pwd",
    "cd /usr/lib && pwd",
    'cd -; echo "$OLDPWD"',
    "export E=$x; sh -c 'echo $E'",
    "unset E x",
    "a+=(one 'two three'); echo ${#a[@]} \"${a[-1]}\"",
    "declare -i n=5; n+=3; echo $n",
    "alias hi='echo hello'",
    "hi",
    "unalias -a",
    "set -f; echo /*; set +f",
    "shopt -s nullglob; echo /none*",
    "shopt -u nullglob; echo /none*",
    "umask 022; umask",
    "umask 077; umask",
    "IFS=:; set -- a:b; v=a:b; echo $v",
    "unset IFS; echo $v",
    'echo "$#" "$@"',
    "set -- 1 '2 3'; echo $#",
    "exec 5>/dev/null; echo gone >&5; echo $?",
    "exec 5>&-; { echo no >&5; } 2>/dev/null; echo $?",
    "(exit 7)",
    "false",
    "! true",
    "false | true; echo ${PIPESTATUS[*]}",
    "set -o pipefail; false | true",
    "set +o pipefail; false | true",
    "echo 'unclosed",
    "if",
    "cat",
    "read line; echo $? $line",
    "cat <<X\n$x\nX",
    "printf 'no newline'",
    "for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done; break",
    "trap 'echo usr1' USR1; kill -USR1 $$",
    "trap - USR1",
    "eval() { echo mine; }; eval x; unset -f eval",
    "printf() { echo mine; }; printf x",
    "unset -f printf",
    "exec >/dev/null; echo hidden",
    "sleep 0 & wait; echo waited",
    "wait; jobs | wc -l",
    "echo $((1/0))",
    "no_such_command_at_all",
    "case $x in 1) echo one;; *) echo other;; esac",
    "let 'y = 4 * 2'; echo $y",
    "[[ abc =~ b(.) ]]; echo ${BASH_REMATCH[1]}",
    "pushd /usr >/dev/null; popd >/dev/null; pwd",
    "set -u; (echo $never_set) 2>/dev/null; set +u",
    "# only a comment",
    "while read l; do echo got $l; done <<< 'here string'",
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    print_blob=True,
)
@given(lines=st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=12))
def test_any_sequence_of_commands_does_what_it_does_in_bash(runtime: Runtime, lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as outputs:
        script = "shopt -s expand_aliases\n" + "".join(
            f"builtin eval {_quoted(line)} </dev/null >{outputs}/{number} 2>/dev/null\n"
            f'builtin printf "%s\\n" "$?" >>{outputs}/codes\n'
            for number, line in enumerate(lines)
        )
        subprocess.run(["bash", "-c", script], cwd=runtime.workspace, stdin=subprocess.DEVNULL, check=False)
        codes = Path(outputs, "codes").read_text().split()
        expected = [(Path(outputs, str(number)).read_text(), int(code)) for number, code in enumerate(codes)]
    try:
        found = [_run(runtime, line) for line in lines]
    finally:
        _post(runtime, "/api/session/delete", {"sessionId": "stateful"})
    assert found == expected


def _run(runtime: Runtime, command: str) -> tuple[str, int]:
    body = _post(runtime, "/api/execute", {"command": command, "sessionId": "stateful", "timeoutMs": 20_000})
    return body["stdout"], body["exitCode"]


def _post(runtime: Runtime, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        runtime.url + path, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        found: dict[str, Any] = json.load(response)
        return found


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
