"""What the runtime is told when it starts, and what it can find out itself."""

import os
import tomllib
from pathlib import Path

import pytest
import sandpod_runtime
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds import keys, names
from sandpod_runtime import environment, gate, identity, options
from sandpod_runtime.budget import LARGEST, SMALLEST, for_this_machine
from sandpod_runtime.surfaces import lifecycle

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


def test_the_budget_is_half_of_the_containers_memory(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{256 << 20}\n")
    assert for_this_machine(limit_files=[tmp_path / "absent", limit]).total == 128 << 20


# What the two versions of cgroups say when there is no limit.
@pytest.mark.parametrize("text", ["max\n", "9223372036854771712\n"])
def test_without_a_limit_the_budget_is_half_of_the_machines_memory(tmp_path: Path, text: str) -> None:
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = tmp_path / "memory"
    limit.write_text(text)
    assert for_this_machine(limit_files=[limit]).total == min(LARGEST, max(SMALLEST, present // 2))


def test_a_tiny_container_has_a_budget_that_one_can_work_with(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{1 << 20}\n")
    assert for_this_machine(limit_files=[limit]).total == SMALLEST


def test_the_runtimes_own_copies_of_shared_names_are_the_projects() -> None:
    """It may not import the others' package, which is not in the sandbox."""
    assert gate.CREDENTIAL_HEADER == names.CREDENTIAL_HEADER
    assert lifecycle.TOKEN_HEADER == names.BIND_TOKEN_HEADER
    assert options.BIND_VARIABLE == names.BIND_SHA256_ENV
    assert options.CONTROL_PORT == names.CONTROL_PORT
    assert options.WORKSPACE == names.WORKSPACE_DIRECTORY
    assert environment.RESERVED == names.ENV_PREFIX
    assert gate.PROVE == ("GET", names.PROVE_PATH)


@given(
    credential=st.text(st.characters(codec="utf-8"), max_size=256),
    nonce=st.from_regex("[0-9A-Za-z_-]{16,64}"),
)
def test_runtime_and_gateway_make_the_same_proof(credential: str, nonce: str) -> None:
    assert identity.proof(credential=credential, nonce=nonce) == keys.proof(
        credential=credential, nonce=nonce
    )
