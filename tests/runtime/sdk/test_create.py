"""`sandpod create`: what it sends, and what it tells while it waits."""

import json
import shlex
import signal
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.support.api_server import ApiServer

Cli = Any
Eventually = Callable[[Callable[[], bool]], None]


def test_it_returns_when_the_sandbox_is_ready_and_says_how_long_that_took(cli: Cli, api: ApiServer) -> None:
    done = cli("create", "demo")
    assert done.returncode == 0
    assert done.stdout.startswith(b"sandbox.sandpod.dev/demo is Ready after ")
    assert done.stderr == b"demo: created\n"
    assert api.asked("POST") == 1


def test_its_options_become_the_spec(cli: Cli, api: ApiServer) -> None:
    words = shlex.split("--image x --cpu 500m --memory 1Gi --sleep-after 1h --keep-alive -e A=1 -e FROM_HERE")
    cli("create", "demo", *words, FROM_HERE="secret")
    made = api.get("demo")
    assert made is not None
    assert made["spec"] == {
        "image": "x",
        "sleepAfter": "1h",
        "keepAlive": True,
        "env": [{"name": "A", "value": "1"}, {"name": "FROM_HERE", "value": "secret"}],
        "resources": {
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "limits": {"cpu": "500m", "memory": "1Gi"},
        },
    }


def test_a_manifest_may_come_from_standard_input(cli: Cli, api: ApiServer) -> None:
    manifest = {
        "kind": "Sandbox",
        "metadata": {"name": "theirs", "namespace": "team"},
        "spec": {"image": "x"},
    }
    done = cli("create", "-f", "-", "-o", "name", stdin=yaml.safe_dump(manifest).encode())
    assert done.stdout == b"sandbox.sandpod.dev/theirs\n"
    assert api.get("theirs", namespace="team") is not None
    assert cli("create", "mine", "-n", "here", "-f", "-", stdin=json.dumps(manifest).encode()).returncode == 0
    assert api.get("mine", namespace="here") is not None


@pytest.mark.parametrize(
    ("manifest", "fragment"),
    [
        (b"kind: Pod\nmetadata: {name: a}", b"'Pod', where 'Sandbox' belongs"),
        (b"a: [", b"not YAML"),
        (b"", b"0 documents"),
        (b"kind: Sandbox\n---\nkind: Sandbox\n", b"kubectl apply"),
        (b"- x", b"documents, where one Sandbox belongs"),
        (b"spec: {}", b"needs a name"),
        (b"metadata: {name: a}\nspec: {imge: x}", b'unknown field "spec.imge"'),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_in_a_sentence(
    cli: Cli, manifest: bytes, fragment: bytes
) -> None:
    done = cli("create", "-f", "-", stdin=manifest)
    assert done.returncode == 1
    assert fragment in done.stderr


def test_what_it_waits_for_is_told_as_it_changes(cli: Cli, api: ApiServer) -> None:
    api.operator = False
    with cli.started("create", "demo") as process:
        assert process.stderr.readline() == b"demo: created\n"
        assert process.stderr.readline() == b"demo: Pending\n"
        for _ in range(2):
            # The same thing twice is told once.
            api.set_status("demo", phase="Starting", ready=False, reason="ImageMissing", message="no image x")
        assert process.stderr.readline() == b"demo: Starting, ImageMissing: no image x\n"
        api.set_status("demo", phase="Running", ready=True, reason="Answering")
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == b""


def test_fields_without_effect_are_warned_about_once(cli: Cli, api: ApiServer) -> None:
    api.operator = False
    honored = {"status": "False", "reason": "NotImplemented", "message": "ports has no effect yet"}
    with cli.started("create", "demo") as process:
        assert process.stderr.readline() == b"demo: created\n"
        assert process.stderr.readline() == b"demo: Pending\n"
        api.set_status("demo", phase="Starting", ready=False, reason="Binding", SpecHonored=honored)
        assert process.stderr.readline() == b"demo: Starting, Binding\n"
        assert process.stderr.readline() == b"demo: warning: ports has no effect yet\n"
        api.set_status("demo", phase="Running", ready=True, reason="Answering", SpecHonored=honored)
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == b""


def test_a_sandbox_that_does_not_get_ready_in_time_stays_and_one_is_told_what_to_do(
    cli: Cli, api: ApiServer
) -> None:
    api.operator = False
    done = cli("create", "demo", "--timeout", "0.5s")
    assert done.returncode == 1
    assert b"demo is not Ready after 0.5s: Pending." in done.stderr
    assert b"sandpod delete demo -n default" in done.stderr
    assert api.get("demo") is not None


def test_without_waiting_it_is_quick(cli: Cli, api: ApiServer) -> None:
    api.operator = False
    done = cli("create", "demo", "--no-wait")
    assert (done.returncode, done.stdout) == (0, b"sandbox.sandpod.dev/demo created\n")
    assert len(api.requests) == 1


def test_a_name_that_is_taken_is_told_with_both_ways_on(cli: Cli, api: ApiServer) -> None:
    api.add("demo")
    done = cli("create", "demo")
    assert done.returncode == 1
    assert b'There is a sandbox "demo" already.\n' in done.stderr
    assert b"sandpod exec demo" in done.stderr
    assert b"sandpod delete demo" in done.stderr


def test_ctrl_c_leaves_the_sandbox_and_says_so(cli: Cli, api: ApiServer) -> None:
    api.operator = False
    with cli.started("create", "demo") as process:
        process.stderr.readline()
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert b"demo: stays" in process.stderr.read()
    assert api.get("demo") is not None


@pytest.mark.parametrize("disturb", ["expire", "end_watches"])
def test_a_watch_that_ends_is_begun_again(
    cli: Cli, api: ApiServer, eventually: Eventually, disturb: str
) -> None:
    api.operator = False
    with cli.started("create", "demo") as process:
        eventually(lambda: api.asked("GET", "watch=1") == 1)
        getattr(api, disturb)()
        eventually(lambda: api.asked("GET", "watch=1") == 2)
        api.set_status("demo", phase="Running", ready=True, reason="Answering")
        assert process.wait(timeout=30) == 0


def test_one_that_is_deleted_while_we_wait_and_made_anew_is_another_one(cli: Cli, api: ApiServer) -> None:
    api.operator = False
    with cli.started("create", "demo") as process:
        process.stderr.readline()
        process.stderr.readline()
        api.remove("demo")
        api.add("demo")
        assert process.wait(timeout=30) == 1
        assert b"was deleted while it was waited for" in process.stderr.read()


def test_the_object_can_be_had_in_every_form(cli: Cli) -> None:
    as_json = json.loads(cli("create", "one", "-o", "json").stdout)
    as_yaml = yaml.safe_load(cli("create", "two", "-o", "yaml").stdout)
    assert (as_json["metadata"]["name"], as_yaml["metadata"]["name"]) == ("one", "two")
    assert as_json["status"]["phase"] == "Running"
    assert "managedFields" not in as_yaml["metadata"]
