"""A sandbox runs in whatever image its owner names: ours, one with nothing but busybox, one with a user and
an environment of its own; the runtime gets into it in either of two ways.
"""

from collections.abc import Iterator

import pytest

from tests.support.cluster import Json, upgrade
from tests.support.sandboxes import Sandbox, Sandboxes

TOOLS = "bash cc curl gcc git jq less make node npm pip ps python3 rg vim"


def test_the_default_image_brings_what_one_expects_of_a_linux_computer(box: Sandbox) -> None:
    missing = box.output(f"for tool in {TOOLS}; do command -v $tool >/dev/null || echo $tool; done")
    assert missing == ""


def test_the_default_image_compiles_and_runs_a_c_program(box: Sandbox) -> None:
    source = '#include <stdio.h>\nint main(void) { puts("compiled"); }\n'
    compiled = box.exec("sh", "-c", "cd $(mktemp -d) && cat > a.c && cc a.c -o a && ./a", stdin=source)
    assert compiled.stdout == "compiled\n"


def test_the_default_image_makes_a_python_environment(box: Sandbox) -> None:
    made = box.output("d=$(mktemp -d) && python3 -m venv $d/v && $d/v/bin/pip --version")
    assert "/v/lib/python" in made


def test_the_default_image_runs_javascript(box: Sandbox) -> None:
    assert box.exec("node", "-e", "console.log([1, 2, 3].map(n => n * n).join())").stdout == "1,4,9\n"


def test_work_begins_in_a_directory_that_one_may_write_to(box: Sandbox) -> None:
    assert box.output("pwd; touch it && rm it && echo written") == "/workspace\nwritten"
    assert box.output('[ -w "$HOME" ] && echo "a home"') == "a home"


@pytest.fixture(scope="module", params=["ImageVolume", "InitContainer"])
def mount(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each way of mounting: Auto finds image volumes in this cluster, the other one is insisted upon."""
    mode = str(request.param)
    if mode == "InitContainer":
        upgrade("--set", f"sandboxes.runtimeMount={mode}")
    yield mode
    if mode == "InitContainer":
        upgrade()


@pytest.fixture(scope="module")
def busybox(mount: str, shared_sandbox: Sandboxes, images: dict[str, str]) -> Sandbox:
    """A sandbox of an image that holds one static program."""
    return shared_sandbox(f"busybox-{mount.lower()}", image=images["busybox"]).wait()


@pytest.fixture(scope="module")
def other(mount: str, shared_sandbox: Sandboxes, images: dict[str, str]) -> Sandbox:
    """A sandbox of an image that has a user, an environment and tools of its own."""
    return shared_sandbox(f"other-{mount.lower()}", image=images["otheruser"], user=2000).wait()


def test_the_runtime_is_mounted_in_the_way_that_was_asked_for(mount: str, busybox: Sandbox) -> None:
    spec = busybox.pod()["spec"]
    volumes: dict[str, Json] = {volume["name"]: volume for volume in spec["volumes"]}
    kind = "image" if mount == "ImageVolume" else "emptyDir"
    assert kind in volumes["sandpod-runtime"]
    names = [container["name"] for container in spec.get("initContainers", [])]
    assert names == ([] if mount == "ImageVolume" else ["sandpod-runtime"])


def test_an_image_with_nothing_but_busybox_runs_commands(busybox: Sandbox) -> None:
    assert busybox.output("echo $((6 * 7)); pwd; id -u") == "42\n/workspace\n1000"
    assert busybox.exec("python3", check=False).returncode == 127


def test_an_image_keeps_its_user_environment_and_tools(other: Sandbox) -> None:
    assert other.output("id -un; id -u") == "other\n2000"
    assert other.output('echo "$FLAVOUR"; echo "$PATH"') == "vanilla\n/tools:/bin"
    assert other.output("greet") == "hello from a tool of the image"


def test_commands_of_any_image_see_nothing_of_the_runtimes_environment(other: Sandbox) -> None:
    names = {line.split("=")[0] for line in other.exec("env").stdout.splitlines()}
    assert not {name for name in names if name.startswith(("SANDPOD", "PYTHON"))}


def test_what_an_image_tells_the_loader_reaches_its_commands_and_not_the_runtime(other: Sandbox) -> None:
    assert other.output('echo "$LD_LIBRARY_PATH"') == "/no/such/libraries"
