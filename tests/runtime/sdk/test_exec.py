"""`sandpod exec`, as a user's shell sees it."""

import io
import json
import secrets
import signal
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_server import ApiServer

Cli = Any
Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture(autouse=True)
def demo(api: ApiServer) -> None:
    api.add("demo")


def is_running(mark: str) -> bool:
    """Whether a `sleep` of this many seconds is there; the brackets keep pgrep from finding itself."""
    pattern = f"sleep [{mark[0]}]{mark[1:]}"
    return subprocess.run(["pgrep", "-f", pattern], stdout=subprocess.DEVNULL).returncode == 0


def test_output_errors_and_the_exit_code_come_back_apart(cli: Cli) -> None:
    done = cli("exec", "demo", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 3)


def test_one_command_is_one_request(cli: Cli, api: ApiServer) -> None:
    cli("exec", "demo", "--", "true")
    assert [method for method, _, _ in api.requests] == ["POST"]


def test_arguments_arrive_to_the_letter(cli: Cli) -> None:
    words = ["two words", "$HOME", 'quo"te', "it's", "a\\b", "*", "", "ünï", "--help", "--", "new\nline", "!"]
    done = cli("exec", "demo", "--", "printf", "%s\\0", *words)
    assert done.stdout.decode().split("\0")[:-1] == words


def test_a_line_is_the_shells(cli: Cli) -> None:
    assert cli("exec", "demo", "-c", "for i in 1 2; do echo $i; done | tac").stdout == b"2\n1\n"


def test_bytes_pass_unchanged_in_both_directions(cli: Cli) -> None:
    data = bytes(range(256)) * 64 + b"\xff\xc3"
    assert cli("exec", "-i", "demo", "--", "cat", stdin=data).stdout == data


def test_an_archive_can_be_unpacked_through_it(cli: Cli, tmp_path: Path) -> None:
    content = secrets.token_bytes(3_000_000)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        entry = tarfile.TarInfo("blob")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    cli("exec", "-i", "demo", "--cwd", str(tmp_path), "--", "tar", "xz", stdin=archive.getvalue())
    assert (tmp_path / "blob").read_bytes() == content


def test_without_i_the_command_has_no_input(cli: Cli) -> None:
    assert cli("exec", "demo", "--", "cat", stdin=b"not for you").stdout == b""


def test_more_input_than_fits_is_refused_before_anything_is_sent(cli: Cli, api: ApiServer) -> None:
    done = cli("exec", "-i", "demo", "--", "cat", stdin=b"x" * ((32 << 20) + 1))
    assert done.returncode == 125
    assert b"larger than the 32 MiB" in done.stderr
    assert api.requests == []


def test_big_output_arrives_whole(cli: Cli) -> None:
    done = cli("exec", "demo", "-c", "yes 0123456789abcde | head -c 20000000; echo end")
    assert len(done.stdout) == 20_000_004
    assert done.stdout.endswith(b"\nend\n")


def test_variables_and_the_directory_are_as_asked(cli: Cli) -> None:
    done = cli(
        "exec",
        "demo",
        "-e",
        "A=b c",
        "--env",
        "FROM_HERE",
        "--cwd",
        "/usr",
        "-c",
        "pwd; echo $A-$FROM_HERE",
        FROM_HERE="x",
    )
    assert done.stdout == b"/usr\nb c-x\n"


def test_output_arrives_as_it_is_written(cli: Cli, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    line = f"printf first; until [ -e {gate} ]; do sleep 0.02; done; echo second"
    with cli.started("exec", "demo", "-c", line) as process:
        assert process.stdout.read(5) == b"first"
        gate.touch()
        assert process.stdout.read() == b"second\n"
        assert process.wait(timeout=30) == 0


def test_a_timeout_ends_it_with_124(cli: Cli) -> None:
    done = cli("exec", "demo", "--timeout", "0.3s", "-c", "echo before; sleep 60")
    assert (done.returncode, done.stdout) == (124, b"before\n")
    assert b"timed out after 300ms" in done.stderr


def test_an_unknown_program_is_127_and_a_signal_128_and_its_number(cli: Cli) -> None:
    assert cli("exec", "demo", "--", "no-such-program").returncode == 127
    assert cli("exec", "demo", "-c", "kill -9 $$").returncode == 137


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGHUP, -1)],
)
def test_however_we_end_the_remote_command_ends_as_well(
    cli: Cli, eventually: Eventually, number: signal.Signals, code: int
) -> None:
    mark = f"31{secrets.randbelow(10**6):06}"
    line = f"echo started; sleep {mark} & sleep {mark}; wait"
    with cli.started("exec", "demo", "-c", line) as process:
        assert process.stdout.readline() == b"started\n"
        assert is_running(mark)
        process.send_signal(number)
        assert process.wait(timeout=30) == code
        assert process.stderr.read() == b""
    eventually(lambda: not is_running(mark))


def test_when_nobody_reads_our_output_the_command_ends_quietly(cli: Cli, eventually: Eventually) -> None:
    mark = f"32{secrets.randbelow(10**6):06}"
    with cli.started("exec", "demo", "-c", f"sleep {mark} & yes") as process:
        assert process.stdout.read(2) == b"y\n"
        process.stdout.close()
        assert process.wait(timeout=30) == 141
        assert process.stderr.read() == b""
    eventually(lambda: not is_running(mark))


def test_a_full_disk_is_told(cli: Cli) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            cli.command("exec", "demo", "--", "echo", "x"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=cli.environ,
        )
    assert (done.returncode, done.stderr) == (
        125,
        b"sandpod exec: Writing the output: No space left on device.\n",
    )


def test_closed_standard_streams_do_not_matter(cli: Cli) -> None:
    words = " ".join(cli.command("exec", "demo", "--", "sh", "-c", "'echo a; echo b >&2; exit 5'"))
    done = subprocess.run(["sh", "-c", f"{words} >&- 2>&- <&-"], env=cli.environ)
    assert done.returncode == 5


def test_json_has_all_of_it_in_one_object(cli: Cli) -> None:
    done = cli("exec", "demo", "--json", "-c", r"printf 'o\377'; echo e >&2; exit 7")
    document = json.loads(done.stdout)
    assert document.pop("durationMs") >= 0
    assert document == {"exitCode": 7, "stdout": "o\ufffd", "stderr": "e\n", "truncated": False}
    assert (done.returncode, done.stderr) == (7, b"")


def test_a_sandbox_that_is_starting_is_waited_for(cli: Cli, api: ApiServer) -> None:
    api.add("slow", ready=False)
    with cli.started("exec", "slow", "--", "echo", "now") as process:
        assert process.stderr.readline() == b"slow: Pending\n"
        api.set_status("slow", phase="Starting", ready=False, reason="ImageMissing", message="no image x")
        assert process.stderr.readline() == b"slow: Starting, ImageMissing: no image x\n"
        api.set_status("slow", phase="Running", ready=True, reason="Answering")
        assert process.stdout.read() == b"now\n"
        assert process.wait(timeout=30) == 0


def test_waiting_asks_the_cluster_once(cli: Cli, api: ApiServer, eventually: Eventually) -> None:
    api.add("slow", ready=False)
    with cli.started("exec", "slow", "--", "true") as process:
        eventually(lambda: api.asked("GET", "watch=1") == 1)
        for reason in ("Unschedulable", "ImageMissing", "Unschedulable"):
            api.set_status("slow", phase="Starting", ready=False, reason=reason, message="so it is")
            eventually(lambda reason=reason: reason.encode() in process.stderr.readline())
        assert len(api.requests) == 3
        api.set_status("slow", phase="Running", ready=True, reason="Answering")
        assert process.wait(timeout=30) == 0
    assert [(method, "watch=1" in path) for method, path, _ in api.requests] == [
        ("POST", False),
        ("GET", False),
        ("GET", True),
        ("POST", False),
    ]


def test_a_gateway_that_is_a_moment_late_is_not_noticed(cli: Cli, api: ApiServer) -> None:
    api.gateway_is_late = 3
    done = cli("exec", "demo", "--", "echo", "hi")
    assert (done.stdout, done.stderr) == (b"hi\n", b"")


def test_a_start_that_takes_too_long_ends_with_125_and_says_what_it_waits_for(
    cli: Cli, api: ApiServer
) -> None:
    api.add("slow", ready=False)
    api.set_status(
        "slow", phase="Starting", ready=False, reason="Unschedulable", message="no node has 64 CPUs"
    )
    done = cli("exec", "slow", "--start-timeout", "0.5s", "--", "true")
    assert done.returncode == 125
    assert b"slow: Starting, Unschedulable: no node has 64 CPUs\n" in done.stderr
    assert b"slow is not Ready after 0.5s: Unschedulable.\n" in done.stderr
    assert b"kubectl describe sandbox slow -n default" in done.stderr
    assert cli("exec", "slow", "--start-timeout", "0", "--", "true").returncode == 125


def test_who_may_run_but_not_look_is_served_as_well(cli: Cli, api: ApiServer) -> None:
    api.add("slow", ready=False)
    api.forbidden = {"get sandboxes", "watch sandboxes"}
    with cli.started("exec", "slow", "--", "echo", "now") as process:
        assert b"phase Pending" in process.stderr.readline()
        api.set_status("slow", phase="Running", ready=True, reason="Answering")
        assert process.stdout.read() == b"now\n"


def test_a_sandbox_that_is_deleted_while_we_wait_is_not_waited_for(cli: Cli, api: ApiServer) -> None:
    api.add("slow", ready=False)
    with cli.started("exec", "slow", "--", "true") as process:
        process.stderr.readline()
        api.remove("slow")
        assert process.wait(timeout=30) == 125


def test_a_stream_that_breaks_off_is_not_taken_for_success(cli: Cli, api: ApiServer) -> None:
    with cli.started("exec", "demo", "-c", "echo started; sleep 60") as process:
        assert process.stdout.readline() == b"started\n"
        api.break_streams()
        assert process.wait(timeout=30) == 125
        assert b"What the command had done by then is done" in process.stderr.read()
