"""`sandpod get` and `sandpod delete`."""

import json
import os
import pty
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.support.api_server import ApiServer

Cli = Any
Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture
def three(api: ApiServer) -> None:
    for name in ("one", "two", "three"):
        api.add(name)
    api.add("four", namespace="team")


@pytest.mark.usefixtures("three")
def test_a_table_like_kubectls_over_all_pages(cli: Cli) -> None:
    assert cli("get").stdout.decode().splitlines() == [
        "NAME    PHASE     READY   SLEEPS-AFTER   AGE",
        "one     Running   True    10m            5s",
        "three   Running   True    10m            5s",
        "two     Running   True    10m            5s",
    ]


@pytest.mark.usefixtures("three")
def test_wide_has_more_columns_and_all_namespaces_one_more(cli: Cli) -> None:
    lines = cli("get", "-A", "-o", "wide").stdout.decode().splitlines()
    assert lines[0].split() == ["NAMESPACE", "NAME", "PHASE", "READY", "SLEEPS-AFTER", "REASON", "AGE"]
    assert lines[-1].split() == ["team", "four", "Running", "True", "10m", "Answering", "5s"]


@pytest.mark.usefixtures("three")
def test_objects_come_as_kubectl_prints_them(cli: Cli) -> None:
    listed = json.loads(cli("get", "-o", "json").stdout)
    assert (listed["kind"], len(listed["items"])) == ("List", 3)
    assert {item["kind"] for item in listed["items"]} == {"Sandbox"}
    one = yaml.safe_load(cli("get", "one", "-o", "yaml").stdout)
    assert (one["kind"], one["metadata"]["name"]) == ("Sandbox", "one")
    assert cli("get", "-o", "name").stdout.split() == [
        b"sandbox.sandpod.dev/one",
        b"sandbox.sandpod.dev/three",
        b"sandbox.sandpod.dev/two",
    ]


def test_where_there_is_nothing_one_is_told_how_to_begin(cli: Cli) -> None:
    done = cli("get")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"sandpod create NAME" in done.stderr
    assert cli("get", "-o", "json").stderr == b""


@pytest.mark.usefixtures("three")
def test_a_name_that_is_nearly_right_is_recognized(cli: Cli) -> None:
    done = cli("get", "tree")
    assert done.returncode == 1
    assert b"Did you mean three?" in done.stderr


@pytest.mark.usefixtures("three")
def test_a_sandbox_of_another_namespace_is_found_there(cli: Cli) -> None:
    done = cli("exec", "four", "--", "true")
    assert done.returncode == 125
    assert b"There is one in namespace team: add -n team" in done.stderr


def test_a_watch_goes_on_with_each_change(cli: Cli, api: ApiServer) -> None:
    api.add("one")
    with cli.started("get", "-w") as process:
        assert process.stdout.readline().split()[0] == b"NAME"
        assert process.stdout.readline().split() == [b"one", b"Running", b"True", b"10m", b"5s"]
        api.set_status("one", phase="Asleep", ready=False, reason="Asleep")
        assert process.stdout.readline().split()[:2] == [b"one", b"Asleep"]
        api.end_watches()
        api.add("two", ready=False)
        assert process.stdout.readline().split() == [b"two", b"5s"]
        api.remove("one")
        assert process.stdout.readline().endswith(b"5s (deleted)\n")


@pytest.mark.parametrize("words", [["get", "-w"], ["get", "one", "-w", "-o", "json"]])
def test_a_watch_survives_that_the_server_forgets(
    cli: Cli, api: ApiServer, eventually: Eventually, words: list[str]
) -> None:
    api.add("one")
    api.add("two")
    with cli.started(*words) as process:
        eventually(lambda: api.asked("GET", "watch=1") == 1)
        api.expire()
        eventually(lambda: api.asked("GET", "watch=1") == 2)
        api.set_status("one", phase="Asleep", ready=False, reason="Asleep")
        while b"Asleep" not in process.stdout.readline():
            pass
    # It has not asked again and again meanwhile.
    assert len(api.requests) == 4


def test_watching_one_that_is_not_there_is_an_error(cli: Cli) -> None:
    for form in ("wide", "json"):
        done = cli("get", "one", "-w", "-o", form)
        assert (done.returncode, done.stdout) == (1, b"")
        assert b'no sandbox "one"' in done.stderr


def test_a_watch_for_programs_prints_objects(cli: Cli, api: ApiServer) -> None:
    api.add("one")
    with cli.started("get", "one", "-w", "-o", "name") as process:
        assert process.stdout.readline() == b"sandbox.sandpod.dev/one\n"
        api.add("two")
        api.set_status("one", phase="Asleep", ready=False, reason="Asleep")
        assert process.stdout.readline() == b"sandbox.sandpod.dev/one\n"


def test_deleting_waits_until_it_is_gone(cli: Cli, api: ApiServer) -> None:
    api.add("one")
    done = cli("delete", "one")
    assert (done.returncode, done.stdout) == (0, b"sandbox.sandpod.dev/one deleted\n")
    assert api.get("one") is None


def test_one_that_takes_long_is_waited_for_as_long_as_asked(
    cli: Cli, api: ApiServer, eventually: Eventually
) -> None:
    api.add("one")
    api.finalizers = True
    done = cli("delete", "one", "--timeout", "0.5s")
    assert done.returncode == 1
    assert b"still there after 0.5s" in done.stderr
    with cli.started("delete", "one") as process:
        eventually(lambda: api.asked("DELETE") == 2)
        api.remove("one")
        assert process.wait(timeout=30) == 0
    api.add("two")
    assert cli("delete", "two", "--no-wait").returncode == 0


def test_all_that_are_named_are_tried(cli: Cli, api: ApiServer) -> None:
    api.add("one")
    api.add("three")
    done = cli("delete", "one", "two", "sandbox.sandpod.dev/three")
    assert done.returncode == 1
    assert done.stdout.count(b"deleted") == 2
    assert b'no sandbox "two"' in done.stderr
    assert cli("delete", "two", "--ignore-not-found").returncode == 0


@pytest.mark.usefixtures("three")
def test_all_of_a_namespace_go_only_if_somebody_says_yes(cli: Cli, api: ApiServer) -> None:
    assert b"-y says yes" in cli("delete", "--all").stderr
    assert answered(cli, b"n\n") == 1
    assert api.get("one") is not None
    assert answered(cli, b"y\n") == 0
    assert api.get("one") is None
    assert api.get("four", namespace="team") is not None
    assert cli("delete", "--all", "-y", "-n", "team").returncode == 0
    assert api.get("four", namespace="team") is None


def answered(cli: Cli, answer: bytes) -> int:
    """The exit code of `delete --all` with this typed at a terminal."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        done = subprocess.run(
            cli.command("delete", "--all"), stdin=theirs, capture_output=True, env=cli.environ, timeout=30
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"one, three, two" in done.stderr
    return done.returncode
