"""Commands in a sandbox, by the CLI and by plain kubectl, through the Kubernetes API."""

import json
import secrets
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager

import httpx
import pytest

from tests.support.cluster import Json, environment, kubectl, proxy_path
from tests.support.sandboxes import Sandbox
from tests.support.waiting import eventually


def execute(box: Sandbox, **body: object) -> Json:
    """The runtime's own endpoint by nothing but kubectl."""
    path = proxy_path(namespace=box.namespace, name=box.name, path="api/execute")
    return json.loads(kubectl("create", "--raw", path, "-f", "-", input=json.dumps(body)).stdout)


@contextmanager
def started(box: Sandbox, *command: str) -> Generator[subprocess.Popen[str]]:
    """`sandpod exec` that is still running."""
    process = subprocess.Popen(
        box.command(*command),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def running(box: Sandbox, pattern: str) -> bool:
    """Whether a process of that command line is there; the brackets keep pgrep from finding itself."""
    return box.exec("pgrep", "-f", f"[{pattern[0]}]{pattern[1:]}", check=False).returncode == 0


def test_output_errors_and_the_exit_code_come_back_apart(box: Sandbox) -> None:
    done = box.exec("sh", "-c", "echo out; echo err >&2; exit 3", check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)


def test_arguments_arrive_as_they_were_given(box: Sandbox) -> None:
    words = ["two words", "$HOME", 'quo"te', "it's", "a\\b", "*", "", "ünïcode"]
    assert box.exec("printf", "%s\\n", *words).stdout.splitlines() == words


def test_an_unknown_program_is_exit_code_127(box: Sandbox) -> None:
    done = box.exec("no-such-program", check=False)
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


def test_output_arrives_as_it_is_written(box: Sandbox) -> None:
    with started(box, "sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.5; done") as process:
        assert process.stdout is not None
        arrived = [(line.strip(), time.monotonic()) for line in process.stdout]
    assert [line for line, _ in arrived] == ["1", "2", "3"]
    # The last line leaves a second after the first: had all been held back, they would arrive as one.
    assert arrived[-1][1] - arrived[0][1] > 0.7


def test_standard_input_reaches_the_command(box: Sandbox) -> None:
    text = "first\nsecond\n" + secrets.token_hex(100_000)
    assert box.exec("cat", stdin=text).stdout == text


def test_big_output_arrives_whole(box: Sandbox) -> None:
    done = box.exec("sh", "-c", "yes 0123456789abcde | head -c 20000000; echo end")
    assert len(done.stdout) == 20_000_004
    assert done.stdout.endswith("\nend\n")


def test_ctrl_c_ends_the_remote_command(box: Sandbox) -> None:
    mark = f"31{secrets.randbelow(10**6):06}"
    with started(box, "sh", "-c", f"echo started; sleep {mark} & sleep {mark}; wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        assert running(box, f"sleep {mark}")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
    eventually(lambda: not running(box, f"sleep {mark}"), timeout=15)


def test_a_client_that_vanishes_leaves_no_process_behind(box: Sandbox) -> None:
    mark = f"32{secrets.randbelow(10**6):06}"
    with started(box, "sh", "-c", f"echo started; sleep {mark}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.kill()
        process.wait()
    eventually(lambda: not running(box, f"sleep {mark}"), timeout=15)


def test_a_sandbox_that_does_not_exist_is_named(box: Sandbox) -> None:
    done = Sandbox("nobody", box.namespace).exec("true", check=False)
    assert done.returncode not in (0, 130)
    assert "nobody" in done.stderr
    assert "Traceback" not in done.stderr


def test_plain_kubectl_runs_a_command(box: Sandbox) -> None:
    answer = execute(box, command="echo $((6 * 7)); exit 5")
    assert (answer["stdout"], answer["exitCode"], answer["success"]) == ("42\n", 5, False)


def test_plain_kubectl_reads_the_version(box: Sandbox) -> None:
    path = proxy_path(namespace=box.namespace, name=box.name, path="api/version")
    answer = json.loads(kubectl("get", "--raw", path).stdout)
    assert answer["version"] == box.status()["runtimeVersion"]


def test_env_and_directory_are_of_one_command_only(box: Sandbox) -> None:
    answer = execute(box, command='pwd; echo "$COLOUR"', cwd="/usr", env={"COLOUR": "green"})
    assert answer["stdout"] == "/usr\ngreen\n"
    assert execute(box, command='pwd; echo "[$COLOUR]"')["stdout"] == "/workspace\n[]\n"


def test_a_timeout_ends_the_command_and_says_so(box: Sandbox) -> None:
    answer = execute(box, command="echo before; sleep 60", timeoutMs=300)
    assert (answer["exitCode"], answer["stdout"]) == (124, "before\n")
    assert "timed out after 300ms" in answer["stderr"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "INVALID_COMMAND"),
        ({"command": "  "}, "INVALID_COMMAND"),
        ({"command": 7}, "VALIDATION_FAILED"),
        ({"command": "true", "timeoutMs": "soon"}, "VALIDATION_FAILED"),
        ([], "VALIDATION_FAILED"),
    ],
)
def test_a_bad_body_gets_the_protocols_error(
    box: Sandbox, api: httpx.Client, body: object, code: str
) -> None:
    path = proxy_path(namespace=box.namespace, name=box.name, path="api/execute")
    answer = api.post(path, json=body)
    assert answer.status_code == 400
    assert (answer.json()["code"], answer.json()["httpStatus"]) == (code, 400)


def test_events_of_a_stream_arrive_one_by_one_through_the_api_server(box: Sandbox, api: httpx.Client) -> None:
    path = proxy_path(namespace=box.namespace, name=box.name, path="api/execute/stream")
    with api.stream("POST", path, json={"command": "echo one; sleep 0.6; echo two"}) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        arrived = [(line, time.monotonic()) for line in answer.iter_lines() if line.startswith("data: ")]
    seen = [(json.loads(line.removeprefix("data: "))["type"], moment) for line, moment in arrived]
    assert [kind for kind, _ in seen] == ["start", "stdout", "stdout", "complete"]
    assert seen[2][1] - seen[1][1] > 0.4
