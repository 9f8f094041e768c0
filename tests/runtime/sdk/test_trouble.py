"""What goes wrong between a user and a sandbox is told in sentences that say what to do."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_server import ApiServer

Cli = Any


def test_the_missing_permission_is_named(cli: Cli, api: ApiServer) -> None:
    api.add("demo")
    api.forbidden = {"create sandboxes/exec"}
    done = cli("exec", "demo", "--", "true")
    assert done.returncode == 125
    assert b'cannot create resource "sandboxes/exec"' in done.stderr
    assert b"Ask whoever runs the cluster for that permission." in done.stderr
    api.forbidden = {"list sandboxes"}
    assert cli("get").returncode == 1


def test_advice_needs_no_permission_that_one_does_not_have(cli: Cli, api: ApiServer) -> None:
    api.forbidden = {"list sandboxes"}
    done = cli("exec", "demo", "--", "true")
    assert done.returncode == 125
    assert b"sandpod create demo" in done.stderr


def test_a_cluster_without_sandpod_is_told_so(cli: Cli, api: ApiServer) -> None:
    api.installed = False
    for words in (["get"], ["create", "demo"], ["exec", "demo", "--", "true"]):
        assert b"This cluster has no Sandpod" in cli(*words).stderr
    told = cli("version").stdout
    assert b"v1.36.0" in told
    assert b"This cluster has no Sandpod" in told


def test_a_gateway_that_is_away_is_told_apart_from_a_sandbox_that_is_starting(
    cli: Cli, api: ApiServer
) -> None:
    api.add("demo")
    api.runtime = None
    done = cli("exec", "demo", "--", "true")
    assert done.returncode == 125
    assert b"kubectl get apiservice" in done.stderr


def test_credentials_that_are_not_accepted_any_more_are_told(cli: Cli, api: ApiServer) -> None:
    api.tokens = {"another"}
    done = cli("get")
    assert done.returncode == 1
    assert b"does not accept this identity" in done.stderr


def test_what_the_runtime_refuses_comes_through(cli: Cli, api: ApiServer) -> None:
    api.add("demo")
    done = cli("exec", "demo", "--cwd", "/no/such/place", "--", "true")
    assert done.returncode == 125
    assert b"/no/such/place" in done.stderr


def test_what_nobody_thought_of_is_one_sentence_and_a_traceback_only_on_request(
    cli: Cli, api: ApiServer
) -> None:
    api.nonsense = ["not", "a", "list", "of", "sandboxes"]
    done = cli("get")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2
    assert b"SANDPOD_DEBUG=1 shows where it is" in done.stderr
    told = subprocess.run(
        cli.command("get"), capture_output=True, env={**cli.environ, "SANDPOD_DEBUG": "1"}, timeout=30
    )
    assert b"Traceback" in told.stderr


def plugin_kubeconfig(api: ApiServer, path: Path, *lines: str) -> dict[str, str]:
    """A kubeconfig whose user is whoever these lines of Python say."""
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", "\n".join(lines)],
        "interactiveMode": "IfAvailable",
    }
    config = {
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": api.url}}],
        "users": [{"name": "test", "user": {"exec": plugin}}],
    }
    path.write_text(json.dumps(config))
    return {"KUBECONFIG": str(path)}


CREDENTIAL = (
    'print(\'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
    ' "status": {"token": "%s"}}\' % token)'
)


def test_a_plugin_that_needs_a_login_says_so_above_our_sentence(
    cli: Cli, api: ApiServer, tmp_path: Path
) -> None:
    lines = ("import sys", "sys.exit('Your session has expired: run login')")
    done = cli("exec", "demo", "--", "true", **plugin_kubeconfig(api, tmp_path / "k", *lines))
    assert done.returncode == 125
    first, second, third = done.stderr.decode().splitlines()
    assert first == "Your session has expired: run login"
    assert "ended with exit code 1" in second
    assert third == "Its own words are above; most often it is time to log in again."


def test_a_token_that_was_revoked_is_fetched_once_more(cli: Cli, api: ApiServer, tmp_path: Path) -> None:
    count = tmp_path / "count"
    api.tokens = {"second"}
    lines = (
        "import pathlib",
        f"path = pathlib.Path({str(count)!r})",
        "token = 'second' if path.exists() else 'first'",
        "path.touch()",
        CREDENTIAL,
    )
    done = cli("get", **plugin_kubeconfig(api, tmp_path / "k", *lines))
    assert done.returncode == 0
    assert [headers["Authorization"] for _, _, headers in api.requests] == ["Bearer first", "Bearer second"]


def test_the_plugin_does_not_take_the_commands_input(cli: Cli, api: ApiServer, tmp_path: Path) -> None:
    api.add("demo")
    lines = ("import sys", "sys.stdin.read()", "token = 't'", CREDENTIAL)
    environ = plugin_kubeconfig(api, tmp_path / "k", *lines)
    assert (
        cli("exec", "-i", "demo", "--", "cat", stdin=b"for the command", **environ).stdout
        == b"for the command"
    )


def test_impersonation_is_sent_along(cli: Cli, api: ApiServer) -> None:
    cli("--as", "jane", "get", "--as-group", "dev")
    headers = api.requests[-1][2]
    assert (headers["Impersonate-User"], headers["Impersonate-Group"]) == ("jane", "dev")


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_in_the_environment_does_not_come_between_us_and_a_local_cluster(
    cli: Cli, variable: str
) -> None:
    assert cli("get", **{variable: "http://127.0.0.1:1"}).returncode == 0


def test_names_complete_from_the_cluster(cli: Cli, api: ApiServer) -> None:
    for name in ("alpha", "beta"):
        api.add(name)
    api.add("gamma", namespace="team")
    assert cli("__complete", "exec", "").stdout.split() == [b"alpha", b"beta"]
    assert cli("__complete", "exec", "al").stdout.split() == [b"alpha"]
    assert cli("__complete", "delete", "alpha", "").stdout.split() == [b"beta"]
    assert cli("__complete", "-n", "team", "get", "").stdout.split() == [b"gamma"]
    assert cli("__complete", "get", "--namespace=team", "").stdout.split() == [b"gamma"]
    assert cli("__complete", "get", "-n", "team", "").stdout.split() == [b"gamma"]
    assert cli("__complete", "get", "alpha", "").stdout.split() == []
