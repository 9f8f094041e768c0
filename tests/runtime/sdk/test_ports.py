"""Ports are exposed and taken back, and sandboxes put to sleep, by the SDK and by the command line."""

from typing import Any

import pytest
from sandpod import Client, ExposedPort, Sandbox
from sandpod.errors import NotFound

from tests.support.api_server import ApiServer

Cli = Any


@pytest.fixture
def demo(api: ApiServer, client: Client) -> Sandbox:
    api.add("demo")
    return Sandbox.get("demo", client=client)


def test_a_port_gets_a_url_and_loses_it_again(demo: Sandbox) -> None:
    made = demo.expose(8080, name="web", access="Private")

    url = "http://8080-demo-v1.sandpod.localhost/"
    assert made == ExposedPort(port=8080, url=url, name="web", access="Private", inherited=False)
    assert demo.ports() == [made]
    assert demo.rotate(8080).url == "http://8080-demo-v2.sandpod.localhost/"
    demo.unexpose(8080)
    assert demo.ports() == []
    with pytest.raises(NotFound, match='no exposed port 8080 of sandbox "demo"'):
        demo.unexpose(8080)


def test_a_sandbox_is_told_to_sleep_and_is_waited_for(demo: Sandbox, api: ApiServer) -> None:
    assert demo.sleep().phase == "Asleep"
    assert demo.sleep(wait=False) is demo
    assert api.asked("POST", "/sandboxes/demo/sleep") == 2


def test_the_command_prints_the_url_and_nothing_else(cli: Cli, demo: Sandbox) -> None:
    first = cli("expose", "demo", "8080", "--name", "web")
    assert (first.returncode, first.stdout) == (0, b"http://8080-demo-v1.sandpod.localhost/\n")
    rotated = cli("expose", "sbx/demo", "8080", "--rotate")
    assert rotated.stdout == b"http://8080-demo-v2.sandpod.localhost/\n"
    assert cli("ports", "demo").stdout.decode().splitlines() == [
        "PORT   NAME   ACCESS   URL",
        "8080   web    Token    http://8080-demo-v2.sandpod.localhost/",
    ]
    gone = cli("unexpose", "demo", "8080")
    assert gone.stdout == b"sandbox.sandpod.dev/demo: port 8080 is not exposed any more\n"
    nothing = cli("ports", "demo")
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert b"expose demo PORT" in nothing.stderr


def test_the_browser_shows_the_port_that_is_asked_for(cli: Cli, demo: Sandbox) -> None:
    nothing = cli("open", "demo", "--print")
    assert (nothing.returncode, b"expose demo PORT" in nothing.stderr) == (1, True)

    first, second = demo.expose(8080), demo.expose(9000)
    # A program that is told the URL stands in for the browser.
    opened = cli("open", "demo", BROWSER="echo browsing %s")
    assert opened.stdout.decode().splitlines() == [first.url, f"browsing {first.url}"]
    assert cli("open", "demo", "9000", "--print").stdout.decode() == f"{second.url}\n"
    missing = cli("open", "demo", "9999")
    assert (missing.returncode, b"Port 9999 is not exposed" in missing.stderr) == (1, True)


def test_a_private_port_is_opened_by_a_link_that_logs_in(cli: Cli, demo: Sandbox) -> None:
    private = demo.expose(8080, access="Private")
    link = f"{private.url}.sandpod/login?code=secret"
    assert demo.login_url(8080) == link
    assert cli("open", "demo", "--print").stdout.decode() == f"{link}\n"


def test_what_is_not_there_is_told(cli: Cli, demo: Sandbox) -> None:
    done = cli("unexpose", "demo", "8080")
    assert (done.returncode, b"no exposed port 8080" in done.stderr) == (1, True)
    for words in (("expose", "dmo", "8080"), ("ports", "dmo"), ("sleep", "dmo")):
        done = cli(*words)
        assert (done.returncode, b"Did you mean demo?" in done.stderr) == (1, True)


def test_several_are_put_to_sleep_by_one_command(cli: Cli, api: ApiServer) -> None:
    api.add("one")
    api.add("two")
    done = cli("sleep", "one", "two")
    assert done.stdout == b"sandbox.sandpod.dev/one is asleep\nsandbox.sandpod.dev/two is asleep\n"
    assert cli("sleep", "one", "--no-wait").stdout == b"sandbox.sandpod.dev/one is told to sleep\n"
