"""The SDK's own surface: what a Python program sees."""

import threading
from collections.abc import Callable

import pytest
from sandpod import Client, ExecResult, Sandbox
from sandpod.errors import CommandFailed, Conflict, Invalid, NotFound, NotReady, TimedOut

from tests.support.api_server import ApiServer

Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture
def demo(api: ApiServer, client: Client) -> Sandbox:
    api.add("demo")
    return Sandbox.get("demo", client=client)


def test_make_use_delete(client: Client, api: ApiServer) -> None:
    sandbox = Sandbox.create("demo", image="x", env={"A": "1"}, client=client)
    assert (sandbox.name, sandbox.namespace, sandbox.phase, sandbox.ready) == (
        "demo",
        "default",
        "Running",
        True,
    )
    assert sandbox.exec("echo $((6 * 7))").stdout == "42\n"
    sandbox.delete(wait=True)
    assert api.get("demo") is None
    with pytest.raises(NotFound):
        sandbox.refresh()


def test_without_a_name_each_gets_its_own(client: Client) -> None:
    names = {Sandbox.create(client=client).name for _ in range(2)}
    assert len(names) == 2
    assert {sandbox.name for sandbox in Sandbox.list(client=client)} == names


def test_a_list_has_all_pages(client: Client, api: ApiServer) -> None:
    for number in range(5):
        api.add(f"box-{number}")
    api.add("elsewhere", namespace="team")
    assert len(Sandbox.list(client=client)) == 5
    assert len(Sandbox.list(all_namespaces=True, client=client)) == 6
    assert [each.name for each in Sandbox.list(namespace="team", client=client)] == ["elsewhere"]


def test_a_command_gives_output_and_code(demo: Sandbox) -> None:
    result = demo.exec("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("out\n", "err\n", 3, False)
    assert 0 < result.duration < 20


def test_a_sequence_is_a_program_and_its_arguments(demo: Sandbox) -> None:
    assert demo.exec(["echo", "$HOME", "*"]).stdout == "$HOME *\n"


def test_what_a_command_is_given(demo: Sandbox) -> None:
    result = demo.exec("pwd; echo $A; cat", env={"A": "ä"}, cwd="/usr", stdin="input")
    assert result.stdout == "/usr\nä\ninput"


def test_bytes_are_as_they_came_and_text_is_readable(demo: Sandbox) -> None:
    result = demo.exec(r"printf 'a\377b'")
    assert (result.stdout_bytes, result.stdout) == (b"a\xffb", "a\ufffdb")


def test_what_must_succeed_raises_with_its_last_words(demo: Sandbox) -> None:
    with pytest.raises(CommandFailed, match="exit code 3: no such luck") as caught:
        demo.exec("echo part; echo no such luck >&2; exit 3", check=True)
    assert caught.value.result.stdout == "part\n"


def test_output_can_be_had_as_it_comes_with_no_character_torn_apart(demo: Sandbox) -> None:
    seen: list[str] = []
    result = demo.exec(r"printf '\303'; sleep 0.1; printf '\244'; echo e >&2", on_stdout=seen.append)
    assert "".join(seen) == "ä" == result.stdout


def test_a_stream_is_bytes_and_an_exit_code_at_the_end(demo: Sandbox) -> None:
    with demo.exec_stream("echo out; exit 4") as run:
        assert run.exit_code is None
        assert b"".join(output.data for output in run if output.stream == "stdout") == b"out\n"
    assert run.exit_code == 4


def test_leaving_a_stream_ends_the_command(demo: Sandbox, eventually: Eventually) -> None:
    with demo.exec_stream("echo $$; exec sleep 600") as run:
        pid = int(next(iter(run)).data)
    eventually(lambda: demo.exec(f"kill -0 {pid}").exit_code != 0)


def test_a_timeout_is_an_exit_code(demo: Sandbox) -> None:
    assert demo.exec("echo before; sleep 60", timeout=0.2).exit_code == 124


def test_no_output_is_too_big_for_our_memory(demo: Sandbox) -> None:
    result = demo.exec("printf begin; yes | head -c 5000000; printf end", max_output_bytes=1000)
    assert (len(result.stdout_bytes), result.truncated) == (1000, True)
    assert result.stdout.startswith("begin")
    assert result.stdout.endswith("end")
    assert "bytes of output were cut here" in result.stdout


def test_commands_run_side_by_side_on_one_client(demo: Sandbox) -> None:
    results: list[ExecResult] = []
    threads = [
        threading.Thread(target=lambda: results.append(demo.exec("sleep 0.2; echo hi"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [result.stdout for result in results] == ["hi\n"] * 8


def test_one_that_is_starting_is_waited_for_or_not_as_asked(client: Client, api: ApiServer) -> None:
    api.add("slow", ready=False)
    slow = Sandbox.named("slow", client=client)
    with pytest.raises(NotReady):
        slow.exec("true", start_timeout=0)
    with pytest.raises(TimedOut, match=r"not Ready after 0.3s"):
        slow.exec("true", start_timeout=0.3)
    timer = threading.Timer(
        0.3, lambda: api.set_status("slow", phase="Running", ready=True, reason="Answering")
    )
    timer.start()
    assert slow.exec("echo hi").stdout == "hi\n"
    timer.join()


def test_waiting_tells_each_change(client: Client, api: ApiServer) -> None:
    api.add("slow", ready=False)
    phases: list[str] = []

    def note(sandbox: Sandbox) -> None:
        phases.append(sandbox.phase)
        following = {"Pending": "Starting", "Starting": "Running"}.get(sandbox.phase)
        if following:
            api.set_status("slow", phase=following, ready=following == "Running", reason=following)

    Sandbox.get("slow", client=client).wait_ready(timeout=10, on_change=note)
    assert phases == ["Pending", "Starting", "Running"]


def test_what_is_deleted_is_the_one_that_was_seen(demo: Sandbox, api: ApiServer) -> None:
    api.remove("demo")
    api.add("demo")
    with pytest.raises(Conflict):
        demo.delete()
    assert api.get("demo") is not None


def test_a_name_that_cannot_be_is_not_sent_anywhere(client: Client, api: ApiServer) -> None:
    with pytest.raises(Invalid):
        Sandbox.get("../pods", client=client)
    assert api.requests == []
