"""What the runtime is told when it starts, and what it can find out itself."""

import tomllib
from pathlib import Path

import pytest
import sandpod_runtime
from sandpod_runtime import options
from sandpod_runtime.budget import LARGEST, SMALLEST, for_this_machine

DIGEST = "0123456789abcdef" * 4


def test_the_version_is_the_distributions() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert sandpod_runtime.__version__ == project["project"]["version"]


def test_in_a_pod_the_variable_is_all_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(options.BIND_VARIABLE, DIGEST.upper())
    found = options.read([])
    assert found == options.Options(bind_sha256=DIGEST)
    assert (found.port, found.workspace) == (3000, "/workspace")


def test_insecure_needs_no_variable_and_ignores_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(options.BIND_VARIABLE, DIGEST)
    found = options.read(["--insecure", "--port", "0", "--workspace", "/tmp/x", "--log-level", "debug"])
    assert found == options.Options(insecure=True, port=0, workspace="/tmp/x", log_level="debug")


@pytest.mark.parametrize("arguments", [["--port", "65536"], ["--port", "-1"], ["--workspace", "here"]])
def test_what_cannot_be_is_refused(arguments: list[str]) -> None:
    with pytest.raises(options.OptionsError):
        options.read(["--insecure", *arguments])


@pytest.mark.parametrize("digest", ["", "abc", "g" * 64, DIGEST + "0"])
def test_a_pods_runtime_wants_a_digest(monkeypatch: pytest.MonkeyPatch, digest: str) -> None:
    monkeypatch.setenv(options.BIND_VARIABLE, digest)
    with pytest.raises(options.OptionsError, match="--insecure"):
        options.read([])


def test_the_budget_is_within_its_bounds_on_any_machine() -> None:
    assert SMALLEST <= for_this_machine().total <= LARGEST
