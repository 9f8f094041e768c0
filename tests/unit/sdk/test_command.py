"""A command's way to the runtime and its events' way back."""

import base64
import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod import _command
from sandpod._command import ExecEvents, Exited, shell_line
from sandpod._results import Captured, Keeper, Output
from sandpod.errors import ConnectionLost, Invalid, RuntimeFailure

_word = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(_word, min_size=1, max_size=5))
def test_a_shell_reads_the_arguments_as_they_were_given(words: list[str]) -> None:
    line = shell_line(["printf", "%s\\0", *words])
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


@pytest.mark.parametrize("word", ["A=1", "if", "time", "{", "!", "~", "[[", "a b", "", "function", "it's"])
def test_the_first_word_is_the_name_of_a_program_whatever_it_looks_like(word: str) -> None:
    line = shell_line([word, "x"])
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 127, done
    assert "command not found" in done.stderr or "No such file" in done.stderr


def test_a_plain_command_stays_readable() -> None:
    assert shell_line(["git", "status", "--short"]) == "git status --short"


def test_a_text_is_a_line_for_the_shell_as_it_is() -> None:
    assert shell_line("echo $HOME | wc -c") == "echo $HOME | wc -c"


@pytest.mark.parametrize("command", ["", "  \n", [], "a\0b", ["a", "b\0"], ["a", "\udc80"]])
def test_what_cannot_be_a_command_is_refused_before_it_is_sent(command: str | list[str]) -> None:
    with pytest.raises(Invalid):
        shell_line(command)


def test_the_body_says_how_to_end_and_how_to_encode() -> None:
    body = _command.body(command="x", env={"A": "b"}, cwd="/tmp", timeout=0.3, stdin=b"\xff")
    assert body == {
        "command": "x",
        "outputEncoding": "base64",
        "onDisconnect": "kill",
        "env": {"A": "b"},
        "cwd": "/tmp",
        "timeoutMs": 300,
        "stdin": "/w==",
        "stdinEncoding": "base64",
    }


@pytest.mark.parametrize(
    ("env", "cwd", "timeout", "stdin"),
    [
        ({"A-B": "x"}, None, None, None),
        ({"": "x"}, None, None, None),
        ({"A": "x\0"}, None, None, None),
        (None, "/a\0", None, None),
        (None, None, 0, None),
        (None, None, -1, None),
        (None, None, None, b"x" * (_command.MAX_STDIN_BYTES + 1)),
    ],
)
def test_what_the_runtime_would_refuse_is_not_sent(
    env: dict[str, str] | None, cwd: str | None, timeout: float | None, stdin: bytes | None
) -> None:
    with pytest.raises(Invalid):
        _command.body(command="x", env=env, cwd=cwd, timeout=timeout, stdin=stdin)


def frame(**event: object) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def test_events_become_output_and_an_ending() -> None:
    stream = (
        frame(type="start", command="x", pid=7)
        + frame(type="stdout", data=base64.b64encode(b"\xffout").decode())
        + b": hb\n\n"
        + frame(type="stderr", data=base64.b64encode(b"err").decode())
        + frame(type="something-new", data=1)
        + frame(type="complete", exitCode=3)
    )
    assert ExecEvents().feed(stream) == [
        Output(stream="stdout", data=b"\xffout"),
        Output(stream="stderr", data=b"err"),
        Exited(3),
    ]


def test_an_error_in_the_stream_is_raised_with_its_words() -> None:
    with pytest.raises(RuntimeFailure, match="no space left"):
        ExecEvents().feed(frame(type="error", error="no space left", data="no space left"))


@pytest.mark.parametrize(
    "frame",
    [
        b"data: nonsense\n\n",
        b"data: []\n\n",
        b"data: {}\n\n",
        b'data: {"type":"stdout"}\n\n',
        b'data: {"type":"stdout","data":"***"}\n\n',
        # Nothing but a number may ever be taken for success.
        b'data: {"type":"complete"}\n\n',
        b'data: {"type":"complete","exitCode":null}\n\n',
    ],
)
def test_nonsense_from_the_runtime_is_a_failure_and_not_a_crash(frame: bytes) -> None:
    with pytest.raises(RuntimeFailure, match="cannot be understood"):
        ExecEvents().feed(frame)


@given(st.lists(st.binary(max_size=50)), st.integers(0, 100))
def test_what_is_kept_of_output_is_its_beginning_and_its_end(pieces: list[bytes], limit: int) -> None:
    keeper = Keeper(limit=limit)
    for piece in pieces:
        keeper.add(piece)
    whole, kept = b"".join(pieces), keeper.captured()
    assert len(kept.data) == min(limit, len(whole))
    assert whole.startswith(kept.head)
    assert whole.endswith(kept.tail)
    assert kept.cut == len(whole) - len(kept.data)


def test_text_says_where_something_is_missing_and_bytes_do_not() -> None:
    captured = Captured(head=b"be", tail=b"end", cut=7)
    assert captured.text == "be\n[7 bytes of output were cut here]\nend"
    assert captured.data == b"beend"


def test_a_lost_connection_is_one_more_way_of_not_being_available() -> None:
    assert str(ConnectionLost("It broke off.", hint="Try again.")) == "It broke off. Try again."
