"""`sandpod pause`, `resume`, `wake`, `list` and `logs`, and what the SDK has for them."""

import json
from typing import Any

import pytest
from sandpod import Client, Sandbox
from sandpod.errors import NotReady, TimedOut

from tests.support.api_server import ApiServer

Cli = Any
WAKE = "sandpod.dev/wake-requested-at"


@pytest.fixture
def demo(api: ApiServer, client: Client) -> Sandbox:
    api.add("demo")
    return Sandbox.get("demo", client=client)


def test_a_pause_lasts_until_it_is_ended(demo: Sandbox, api: ApiServer) -> None:
    assert demo.pause().phase == "Asleep"
    made = api.get("demo")
    assert made is not None
    assert made["spec"]["paused"] is True
    with pytest.raises(NotReady, match="paused"):
        demo.wake()
    assert demo.resume().ready
    assert made["spec"]["paused"] is False


def test_each_wake_is_a_new_request_and_is_waited_for(demo: Sandbox, api: ApiServer) -> None:
    seen: set[str] = set()
    for _ in range(2):
        assert demo.wake().ready
        made = api.get("demo")
        assert made is not None
        seen.add(made["metadata"]["annotations"][WAKE])
    assert len(seen) == 2
    api.operator = False
    with pytest.raises(TimedOut, match="not Ready after"):
        demo.wake(timeout=0.2)
    assert demo.wake(wait=False) is demo


def test_a_wake_is_over_also_when_somebody_else_asked_after_it(
    cli: Cli, demo: Sandbox, api: ApiServer
) -> None:
    api.set_status("demo", phase="Asleep", ready=False, reason="Idle", message="It sleeps.")
    api.operator = False
    with cli.started("wake", "demo") as process:
        # It has asked, and waits.
        assert b"Asleep" in process.stderr.readline()
        # The operator is back, and finds the last request only.
        api.operator = True
        assert demo.wake().ready
        assert process.wait(20) == 0


def test_the_commands_name_each_that_they_changed(cli: Cli, api: ApiServer) -> None:
    api.add("one")
    api.add("two")
    done = cli("pause", "one", "two")
    assert done.stdout == b"sandbox.sandpod.dev/one is asleep\nsandbox.sandpod.dev/two is asleep\n"
    done = cli("wake", "one")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is paused" in done.stderr
    assert cli("resume", "one").stdout == b"sandbox.sandpod.dev/one is Ready\n"
    assert cli("wake", "sbx/one").stdout == b"sandbox.sandpod.dev/one is Ready\n"
    assert cli("wake", "one", "--no-wait").stdout == b"sandbox.sandpod.dev/one is asked to wake\n"


def test_one_that_is_not_there_does_not_keep_the_others_from_being_tried(cli: Cli, api: ApiServer) -> None:
    api.add("demo")
    done = cli("pause", "dmo", "demo")
    assert (done.returncode, done.stdout) == (1, b"sandbox.sandpod.dev/demo is asleep\n")
    assert b"Did you mean demo?" in done.stderr


def test_what_is_waited_for_is_told(cli: Cli, api: ApiServer) -> None:
    api.add("demo")
    api.set_status("demo", phase="Asleep", ready=False, reason="Idle", message="It sleeps.")
    api.operator = False
    with cli.started("wake", "demo") as process:
        assert b"Asleep" in process.stderr.readline()
        api.set_status("demo", phase="Starting", ready=False, reason="Starting", message="The pod starts.")
        assert b"The pod starts." in process.stderr.readline()


def test_a_list_shows_who_sleeps_and_why(cli: Cli, api: ApiServer) -> None:
    api.add("one")
    api.add("two", namespace="team")
    assert cli("pause", "one").returncode == 0
    lines = cli("list").stdout.decode().splitlines()
    assert lines[0].split() == ["NAME", "PHASE", "SINCE", "WHY", "SLEEPS-AFTER"]
    assert [line.split()[:2] for line in lines[1:]] == [["one", "Asleep"]]
    assert lines[1].split()[-2:] == ["Paused", "paused"]
    wide = cli("list", "-A", "-o", "wide").stdout.decode().splitlines()
    assert wide[0].split()[0] == "NAMESPACE"
    assert [line.split()[:3] for line in wide[1:]] == [
        ["default", "one", "Asleep"],
        ["team", "two", "Running"],
    ]
    listed = json.loads(cli("list", "-o", "json").stdout)
    assert [each["status"]["sleepReason"] for each in listed["items"]] == ["Paused"]
    nothing = cli("list", "-n", "empty")
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert b"sandpod create NAME" in nothing.stderr


def test_a_setups_log_is_read_through_the_cluster(cli: Cli, api: ApiServer, demo: Sandbox) -> None:
    # This runtime has had no setup, and so there is nothing to read and nothing to follow.
    assert b"".join(demo.setup_log(follow=True)) == b""
    done = cli("logs", "demo", "--setup", "-f")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert api.asked("GET", "/proxy/api/setup/log?follow=true") == 2
    assert b"logs demo --setup" in cli("logs", "demo").stderr
    assert b"There is no sandbox" in cli("logs", "other", "--setup").stderr


def test_what_create_takes_arrives_in_the_cluster(cli: Cli, api: ApiServer) -> None:
    words = [
        "--workspace",
        "10Gi",
        "--setup",
        "pip install x",
        "--process",
        "web=npm start",
        "--egress",
        "None",
    ]
    assert cli("create", "demo", *words, "--template", "python").returncode == 0
    made = api.get("demo")
    assert made is not None
    assert made["spec"] == {
        "templateRef": {"name": "python"},
        "workspace": {"size": "10Gi"},
        "network": {"egress": "None"},
        "setup": ["pip install x"],
        "processes": [{"name": "web", "command": "npm start"}],
    }
    done = cli("create", "other", "--process", "npm start")
    assert done.returncode == 1
    assert b"--process web='npm start'" in done.stderr
