"""Commands that start without bash: only those of which bash would make the very same."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.process import plain

ENVIRON = {"PATH": "/no/such/place:/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "A.B": "odd", "LANG": "C"}


def seen(
    arguments: list[str], *, path: str, environ: dict[str, str], directory: str
) -> tuple[int, bytes, bytes]:
    found = subprocess.run(
        arguments, executable=path, env=environ, cwd=directory, capture_output=True, timeout=10, check=False
    )
    return found.returncode, b"\n".join(sorted(found.stdout.split(b"\n"))), found.stderr


@pytest.mark.parametrize(
    "command",
    [
        "env",
        "  env \n",
        "/usr/bin/env -u LANG A=b",
        "ls -la /proc/self/fd/../root",
        "cat /no/such/file",
        "true",
        "false",
        "sh -c pwd",
        "date -u --date=2031-04-05T06:07:08",
        "basename a/b,c:d@e%f+g=h",
    ],
)
@pytest.mark.parametrize("more", [{}, {"SHLVL": "7"}, {"PWD": "/etc", "OLDPWD": "/usr"}, {"_": "old"}])
def test_a_program_sees_what_bash_would_have_shown_it(
    command: str, more: dict[str, str], tmp_path: Path
) -> None:
    environ = ENVIRON | more
    place = str(tmp_path)
    program = plain.program(command, environ=environ, directory=place)
    assert program is not None
    assert seen(
        program.arguments, path=program.path, environ=program.environ, directory=program.directory
    ) == seen(["bash", "-c", command], path="/bin/bash", environ=environ, directory=place)


def test_behind_a_link_the_directory_is_the_one_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    program = plain.program("env", environ=ENVIRON, directory=str(link))
    assert program is not None
    assert program.environ["PWD"] == str(tmp_path / "real")
    # Told so, bash would believe that it is in the link.
    assert plain.program("env", environ=ENVIRON | {"PWD": str(link)}, directory=str(link)) is None


@pytest.mark.parametrize(
    "command",
    [
        "cd /",
        "echo a",
        "true x",
        "time env",
        "exec env",
        "env | cat",
        "env; env",
        "A=b env",
        "env $A",
        "env ~",
        "env a{b,c}",
        "env *",
        "env 'a'",
        'env "a"',
        "env \\a",
        "env >x",
        "env &",
        "env # a",
        "! env",
        "env\nenv",
        "no-such-program",
        "./env",
        "sub/env",
        "~/env",
        "",
        " ",
        "env é",
        "env " + "x" * 5000,
        "/etc/passwd",
        "/usr",
    ],
)
def test_whatever_else_is_bashs(command: str) -> None:
    assert plain.program(command, environ=ENVIRON, directory="/") is None


@pytest.mark.parametrize(
    "more",
    [
        {"BASH_ENV": "/etc/profile"},
        {"ENV": "/x"},
        {"BASH_FUNC_env%%": "() { echo mine; }"},
        {"BASHOPTS": "x"},
        {"SHELLOPTS": "xtrace"},
        {"POSIXLY_CORRECT": ""},
        {"SSH_CLIENT": "x"},
        {"SHLVL": "x"},
        {"SHLVL": "1000"},
        {"OLDPWD": "/no/such/place"},
        {"PATH": "bin:/usr/bin"},
        {"PATH": ":/usr/bin"},
        {"PATH": "~/bin:/usr/bin"},
    ],
)
def test_variables_that_sway_bash_leave_it_to_bash(more: dict[str, str]) -> None:
    assert plain.program("env", environ=ENVIRON | more, directory="/") is None


def test_every_builtin_and_word_of_this_bash_is_left_to_it() -> None:
    listed = subprocess.run(
        ["/bin/bash", "-c", "compgen -b; compgen -k"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(listed) > 60
    for word in set(listed) - {"true", "false"}:
        assert plain.program(word, environ=ENVIRON, directory="/") is None


@given(text=st.text(alphabet="env a/.-=:%@+,;|&$'\"\\`~*?[]{}()<>#!\n\t", max_size=12))
def test_no_text_with_a_meaning_of_its_own_is_taken_for_words(text: str) -> None:
    found = plain.program(f"env {text}", environ=ENVIRON, directory="/")
    if found is not None:
        assert not set(text.strip(" \t\n")) & set(";|&$'\"\\`~*?[]{}()<>#!\n")
        assert found.arguments[1:] == text.split()
