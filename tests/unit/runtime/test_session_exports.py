"""Reading what a shell prints of its variables."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_runtime.session.exports import exported


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", {}),
        (
            b'declare -x A="1"\ndeclare -x B\ndeclare -rx C="\\$x \\`y\\` \\"z\\" \\\\"\n',
            {"A": "1", "C": '$x `y` "z" \\'},
        ),
        (b"declare -x A=$'a\\nb\\t\\'\\001\\xff'\n", {"A": "a\nb\t'\x01\udcff"}),
        (b"export A='it'\"'\"'s'\nexport B\nexport C='x\ny'\n", {"A": "it's", "C": "x\ny"}),
        (
            b'declare -x A="\ndeclare -x EVIL=\\"1\\"\n"\ndeclare -x B="2"\n',
            {"A": '\ndeclare -x EVIL="1"\n', "B": "2"},
        ),
        (b'debug\n\n7\ndebug\ndeclare -x A="1"\n', {"A": "1"}),
        (b'declare -x A="unfinished', {"A": ""}),
    ],
)
def test_declarations_of_every_kind_are_read(text: bytes, expected: dict[str, str]) -> None:
    assert exported(text) == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=40)))
def test_what_a_shell_prints_is_read_as_it_was(values: list[str]) -> None:
    environ = {f"V{number}": value for number, value in enumerate(values)}
    for shell in ("bash", "dash"):
        if found := shutil.which(shell):
            output = subprocess.run([found, "-c", "export -p"], env=environ, capture_output=True, check=True)
            read = exported(output.stdout)
            assert {name: read.get(name) for name in environ} == environ


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_text_is_too_odd_to_read(text: bytes) -> None:
    exported(b'declare -x A="' + text)
    exported(text)
