"""What the real API server says to manifests: each mistake that people make gets the sentence to mend it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.manifests import BAD, BEFORE, CHANGES, GOOD, Bad

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
CRDS = sorted((ROOT / "crds").glob("*.yaml"))


def manifest(spec: Json, *, name: str = "trial", kind: str = "Sandbox") -> str:
    return json.dumps(
        {"apiVersion": "sandpod.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )


def refusal(kubectl: Kubectl, text: str) -> str:
    """What kubectl prints for a manifest in a namespace that exists everywhere."""
    answer = kubectl("create", "--dry-run=server", "--namespace=default", "-f", "-", input=text, check=False)
    assert answer.returncode != 0, f"accepted: {text}"
    return answer.stderr


def says(stderr: str, *, field: str, sentence: str) -> bool:
    return any(field in line and sentence in line for line in stderr.splitlines())


@pytest.mark.parametrize("row", BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_gets_a_sentence_that_says_what_to_change(kubectl: Kubectl, row: Bad) -> None:
    stderr = refusal(kubectl, manifest(row.spec, kind=row.kind))
    assert says(stderr, field=row.field, sentence=row.sentence), stderr


@pytest.mark.parametrize("name", ["a.b", "x" * 64, "my.sandbox.example"])
def test_a_name_that_fits_no_host_gets_a_sentence(kubectl: Kubectl, name: str) -> None:
    stderr = refusal(kubectl, manifest({}, name=name))
    assert says(stderr, field="metadata.name", sentence="at most 63 lower-case letters, digits"), stderr


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
def test_a_good_manifest_is_accepted(kubectl: Kubectl, spec: Json) -> None:
    kubectl("create", "--dry-run=server", "--namespace=default", "-f", "-", input=manifest(spec))


def test_a_sandbox_without_any_spec_is_accepted(kubectl: Kubectl) -> None:
    text = json.dumps(
        {"apiVersion": "sandpod.dev/v1alpha1", "kind": "Sandbox", "metadata": {"name": "x" * 63}}
    )
    kubectl("create", "--dry-run=server", "--namespace=default", "-f", "-", input=text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_accepted(kubectl: Kubectl, path: Path) -> None:
    kubectl("create", "--dry-run=server", "--namespace=default", "-f", str(path))


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_the_api_server_accepts_the_schemas_and_what_their_rules_cost(kubectl: Kubectl, path: Path) -> None:
    kubectl("replace", "--dry-run=server", "-f", str(path))


@pytest.fixture(scope="module")
def changeable(kubectl: Kubectl) -> Any:
    """A sandbox that exists."""
    text = manifest(BEFORE, name="manifests-changeable")
    kubectl("apply", "--namespace=default", "-f", "-", input=text)
    yield "sandbox/manifests-changeable"
    kubectl("delete", "--namespace=default", "sandbox/manifests-changeable", "--wait=false")


@pytest.mark.parametrize("row", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_that_would_lose_something_is_refused(kubectl: Kubectl, changeable: str, row: Bad) -> None:
    patch = json.dumps({"spec": row.spec})
    answer = kubectl(
        "patch",
        changeable,
        "--namespace=default",
        "--dry-run=server",
        "--type=merge",
        "-p",
        patch,
        check=False,
    )
    assert answer.returncode != 0
    assert says(answer.stderr, field=row.field, sentence=row.sentence), answer.stderr


@pytest.mark.parametrize(
    "spec",
    [
        {"workspace": {"size": "3Gi", "reclaim": "Retain"}},
        {"ports": [{"port": 8080, "tokenVersion": 3}, {"port": 9090}]},
        {"ports": None, "sleepAfter": 30, "keepAlive": True},
    ],
    ids=["a larger volume", "a new URL", "no ports"],
)
def test_a_change_that_loses_nothing_is_accepted(kubectl: Kubectl, changeable: str, spec: Json) -> None:
    patch = json.dumps({"spec": spec})
    kubectl("patch", changeable, "--namespace=default", "--dry-run=server", "--type=merge", "-p", patch)


def test_a_pool_can_be_scaled_with_kubectl(kubectl: Kubectl, namespace: str) -> None:
    pool = manifest({"templateRef": {"name": "none"}}, kind="SandboxPool")
    kubectl("create", f"--namespace={namespace}", "-f", "-", input=pool)
    kubectl("scale", f"--namespace={namespace}", "sandboxpool/trial", "--replicas=3")
    shown = kubectl("get", f"--namespace={namespace}", "sbxp", "trial", "-o", "jsonpath={.spec.replicas}")
    assert shown.stdout == "3"


@pytest.mark.parametrize("word", ["sandboxes", "sbx", "sandpod", "all"])
def test_kubectl_lists_sandboxes_by_each_of_their_names(kubectl: Kubectl, changeable: str, word: str) -> None:
    lines = kubectl("get", "--namespace=default", word).stdout.splitlines()
    columns = ["NAME", "PHASE", "READY", "SLEEPS-AFTER", "ASLEEP", "WHY", "AGE"]
    assert any(line.split() == columns for line in lines)
    assert any(changeable.split("/")[1] in line for line in lines)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("sandbox", "A Linux computer for a person or an agent"),
        ("sandbox.spec.sleepAfter", "45s, 10m or 1h30m, or whole seconds"),
        ("sandbox.spec.ports", "from 1024 to 65535, not 3000"),
        ("sandboxtemplate.spec", "Environment variables of every command"),
        ("sandboxpool.spec", "How many unclaimed pods to keep warm"),
        ("sandboxpolicy.spec.maxSandboxes", "The oldest ones may start"),
    ],
)
def test_kubectl_explains_the_fields(kubectl: Kubectl, field: str, words: str) -> None:
    shown = " ".join(kubectl("explain", field).stdout.split())
    assert words in shown


def test_kubectl_explains_a_sandbox_as_a_whole(kubectl: Kubectl) -> None:
    shown = kubectl("explain", "sandbox", "--recursive").stdout
    assert {"sleepAfter", "workspace", "egress", "conditions"} <= set(shown.split())
