"""What the user's commands find in their environment."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.environment import (
    DEFAULT_PATH,
    LARGEST_VARIABLE,
    Environment,
    checked_variable,
    completed,
    inherited,
    largest,
    merged,
    name_problem,
    size,
    user_name,
)
from sandpod_runtime.errors import Fault

NAMES = st.text(st.characters(codec="ascii", exclude_characters="=\0"), min_size=1, max_size=12)
ENVIRONS = st.dictionaries(
    NAMES | NAMES.map("SANDPOD_".__add__) | NAMES.map("SANDPOD_KEEP_".__add__), st.text()
)


@given(environ=ENVIRONS)
def test_nothing_of_ours_is_inherited_and_nothing_else_is_lost(environ: dict[str, str]) -> None:
    found = inherited(environ, has_service_account=True)
    kept = {
        name.removeprefix("SANDPOD_KEEP_"): value
        for name, value in environ.items()
        if name.startswith("SANDPOD_KEEP_") and name != "SANDPOD_KEEP_"
    }
    plain = {name: value for name, value in environ.items() if not name.startswith("SANDPOD_")}
    assert found == plain | kept


def test_where_the_api_server_is_concerns_only_pods_with_a_service_account() -> None:
    environ = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_PORT": "tcp://…",
        "KUBERNETES_NOTES": "mine",
    }
    assert inherited(environ, has_service_account=False) == {"KUBERNETES_NOTES": "mine"}
    assert inherited(environ, has_service_account=True) == environ


@pytest.mark.parametrize(
    ("home", "writable", "expected"),
    [
        ("/home/me", {"/home/me", "/workspace"}, "/home/me"),
        ("/home/me", {"/workspace", "/tmp"}, "/workspace"),
        ("/", {"/", "/workspace"}, "/workspace"),
        ("", {"/tmp"}, "/tmp"),
        (None, {"/var/tmp"}, "/var/tmp"),
        ("/root", {"/"}, "/"),
    ],
)
def test_home_is_a_place_that_can_be_written(home: str | None, writable: set[str], expected: str) -> None:
    environ = {} if home is None else {"HOME": home}
    found = completed(environ, workspace="/workspace", user="me", writable=writable.__contains__)
    assert found["HOME"] == expected


def test_what_an_image_lacks_is_added_and_what_it_has_is_kept() -> None:
    found = completed({}, workspace="/workspace", user="sandbox", writable=lambda _: True)
    assert found == {"PATH": DEFAULT_PATH, "HOME": "/workspace", "USER": "sandbox", "LOGNAME": "sandbox"}
    image = {"PATH": "/mine", "HOME": "/home/x", "USER": "x", "LOGNAME": "y"}
    assert completed(image, workspace="/workspace", user="sandbox", writable=lambda _: True) == image


def test_a_calls_variables_win_and_null_is_not_given() -> None:
    assert merged({"A": "1", "B": "2"}, {"A": "3", "B": None, "C": ""}) == {"A": "3", "B": "2", "C": ""}
    assert merged({"A": "1"}, None) == {"A": "1"}


def test_the_bind_adds_to_the_image_and_wins() -> None:
    environment = Environment(image={"A": "image", "B": "image", "PATH": "/bin"}, workspace="/nowhere")
    environment.bind({"B": "bind", "HOME": "/tmp"})
    assert environment.variables["A"] == "image"
    assert environment.variables["B"] == "bind"
    assert environment.variables["HOME"] == "/tmp"


def test_changes_win_over_all_and_the_rest_comes_back_when_they_are_unset() -> None:
    environment = Environment(image={"A": "image", "PATH": "/mine", "HOME": "/tmp"}, workspace="/nowhere")
    environment.bind({"B": "bind"})
    environment.change({"A": "1", "B": None, "C": "3"})
    assert environment.variables == environment.variables | {"A": "1", "C": "3"}
    assert "B" not in environment.variables
    assert environment.changes == {"A": "1", "B": None, "C": "3"}


def test_who_was_told_before_is_told_only_what_is_new() -> None:
    environment = Environment(image={"PATH": "/mine", "HOME": "/tmp"}, workspace="/nowhere")
    environment.change({"A": "1"})
    told = environment.revision
    environment.change({"B": "2", "PATH": None, "C": None})
    assert environment.changes_since(told) == {"B": "2", "PATH": DEFAULT_PATH, "C": None}
    assert environment.changes_since(environment.revision) == {}


@given(variables=st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_what_is_counted_is_what_the_kernel_needs(variables: dict[str, str]) -> None:
    entries = [f"{name}={value}\0".encode() for name, value in variables.items()]
    assert size(variables.items()) == sum(map(len, entries)) + 8 * len(entries)


def test_a_change_that_leaves_no_room_for_commands_is_refused() -> None:
    environment = Environment(image={"HOME": "/tmp"}, workspace="/nowhere")
    large = {f"A{number}": "x" * 100_000 for number in range(largest() // 100_000)}
    environment.check_room({"A": "x"})
    with pytest.raises(Fault, match="KiB"):
        environment.check_room(large | {"B": "x" * 100_000})
    assert environment.changes == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("", "x"), ("A=", "x"), ("SANDPOD_X", "x"), ("A", "\0"), ("A", "x" * (128 << 10)), ("A", "ä" * 70_000)],
)
def test_variables_that_the_kernel_would_not_take_are_refused(name: str, value: str) -> None:
    with pytest.raises(Fault):
        checked_variable(name, value, field="set")


def test_the_largest_variable_is_accepted_by_the_kernel() -> None:
    value = "x" * (LARGEST_VARIABLE - 1)
    assert checked_variable("A", value, field="set") == value
    subprocess.run(["/bin/true"], env={"A": value}, check=True)


@pytest.mark.parametrize("name", ["A", "_", "a.b-c", "BASH_FUNC_f%%", "HTTP_PROXY", "1"])
def test_names_that_kubernetes_takes_are_taken(name: str) -> None:
    assert name_problem(name) is None


@given(
    name=st.text().filter(
        lambda name: not name or not name.isprintable() or not name.isascii() or "=" in name
    )
)
def test_other_names_are_not(name: str) -> None:
    assert name_problem(name)


def test_our_own_names_are_not_the_users_to_set() -> None:
    assert name_problem("SANDPOD_BIND_SHA256")
    assert name_problem("SANDPODX") is None


def test_the_users_name_is_the_one_in_the_images_own_file(tmp_path: Path) -> None:
    users = tmp_path / "passwd"
    users.write_bytes(
        b"# 1000\n:x:1000:0::/:/bin/sh\nshort:x:1000\nroot:x:0:0::/root:/bin/sh\n"
        b"me:x:1000:1000:M\xff:/home/me:\nlater:x:1000:0::/:/bin/sh\n"
    )
    assert user_name(1000, users=users) == "me"
    assert user_name(0, users=users) == "root"
    assert user_name(100, users=users) == "sandbox"


def test_without_a_file_that_can_be_read_the_user_has_a_name_as_well(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for users in (tmp_path / "none", tmp_path, fifo):
        assert user_name(1000, users=users) == "sandbox"


def test_a_huge_file_of_users_is_not_read_to_its_end(tmp_path: Path) -> None:
    users = tmp_path / "passwd"
    users.write_bytes(b"a:x:1:1::/:\n" + b"#" * (1 << 20) + b"\nb:x:2:2::/:\n")
    assert (user_name(1, users=users), user_name(2, users=users)) == ("a", "sandbox")
