"""What a platform team does with the chart: upgrade it, change a value, uninstall it, install it again."""

import json

import pytest

from tests.support.cluster import (
    API_SERVICE,
    RELEASE,
    ROOT,
    SYSTEM,
    Json,
    control_plane_is_ready,
    get,
    kubectl,
    run,
    sandpod,
    upgrade,
)
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually
from tests.support.writes import operator_writes

OURS = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/managed-by=Helm"
RIGHTS = "serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
KINDS = f"deployments,services,apiservices,crds,{RIGHTS}"


def objects() -> dict[str, str]:
    """Everything that the chart has put into the cluster, and the version that each has."""
    versions: dict[str, str] = {}
    for scope in (["-n", SYSTEM], ["-n", "kube-system"]):
        for each in get(KINDS, "-l", OURS, *scope)["items"]:
            versions[f"{each['kind']} {each['metadata']['name']}"] = _meaning(each)
    return versions


def _meaning(found: Json) -> str:
    """The object without what changes by itself."""
    metadata: Json = found["metadata"]
    # Helm writes its revision's number nowhere in the objects; Kubernetes counts changes of what is wanted.
    kept = {name: metadata.get(name) for name in ("uid", "generation", "labels", "annotations")}
    if "generation" not in metadata:
        kept["resourceVersion"] = metadata["resourceVersion"]
    return json.dumps(kept, sort_keys=True)


def pods() -> set[str]:
    """Without those on their way out: a gateway finishes what is under way."""
    found = [pod["metadata"] for pod in get("pods", "-n", SYSTEM)["items"]]
    return {metadata["uid"] for metadata in found if "deletionTimestamp" not in metadata}


@pytest.fixture
def kept(shared_sandbox: Sandboxes) -> Sandbox:
    """A sandbox that is there before, and has to be there after."""
    box = shared_sandbox("kept").wait()
    box.exec("sh", "-c", "echo mine > /workspace/note")
    return box


def is_untouched(box: Sandbox, *, uid: str) -> bool:
    assert box.pod()["metadata"]["uid"] == uid
    assert box.output("cat /workspace/note") == "mine"
    return True


def test_an_upgrade_without_a_change_changes_nothing() -> None:
    upgrade()
    before, running = objects(), pods()
    assert len(before) > 10
    upgrade()
    assert objects() == before
    assert pods() == running


def test_sandboxes_survive_an_upgrade_of_both_deployments(kept: Sandbox) -> None:
    uid: str = kept.pod()["metadata"]["uid"]
    running, written = pods(), operator_writes(kept.namespace)
    upgrade("--set", "operator.logLevel=debug", "--set", "gateway.logLevel=debug")
    try:
        assert not running & pods()
        assert is_untouched(kept, uid=uid)
        assert operator_writes(kept.namespace) == written
    finally:
        upgrade()


def test_sandboxes_survive_uninstalling_and_are_taken_up_when_installed_again(kept: Sandbox) -> None:
    uid: str = kept.pod()["metadata"]["uid"]
    try:
        run("helm", "uninstall", RELEASE, "-n", SYSTEM, "--wait")
        assert kubectl("get", "apiservice", API_SERVICE, check=False).returncode != 0
        assert kubectl("api-resources").stderr == ""
        assert kubectl("get", "sandbox", "kept", "-n", kept.namespace).returncode == 0
        assert kept.pod()["metadata"]["uid"] == uid
        assert kubectl("get", "secret", "sandpod-key", "-n", SYSTEM).returncode == 0
    finally:
        upgrade()
    eventually(lambda: is_untouched(kept, uid=uid), timeout=20)


def test_a_sandbox_made_while_nobody_was_there_starts_afterwards(sandbox: Sandboxes) -> None:
    deployment = ("-n", SYSTEM, "deployment/sandpod-operator")
    kubectl("scale", *deployment, "--replicas=0")
    try:
        kubectl("-n", SYSTEM, "wait", "pod", "-l", "app.kubernetes.io/component=operator", "--for=delete")
        box = sandbox()
        done = sandpod("exec", "-n", box.namespace, "box", "--start-timeout=0", "--", "true", check=False)
        assert done.returncode == 125
    finally:
        kubectl("scale", *deployment, "--replicas=1")
    box.wait()
    control_plane_is_ready()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("gateway.replica=2", "additional properties 'replica' not allowed"),
        ("gateway.replicas=0", "/gateway/replicas"),
        ("sandboxes.runtimeMount=Magic", "'Auto', 'ImageVolume', 'InitContainer'"),
        ("certificates.mode=Mine", "'Managed', 'CertManager'"),
        ("sandboxes.defaults.user=0", "/sandboxes/defaults/user"),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(setting: str, sentence: str) -> None:
    done = run("helm", "template", RELEASE, ROOT / "charts/sandpod", "--set", setting, check=False)
    assert done.returncode != 0
    assert sentence in done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["certificates.mode=CertManager"],
        [
            "certificates.mode=CertManager",
            "certificates.issuerRef.kind=ClusterIssuer",
            "certificates.issuerRef.name=ca",
        ],
        ["gateway.replicas=3", "images.registry=registry.example.com/mirror", "commonLabels.team=platform"],
        [
            "crds.install=false",
            "rbac.aggregateToDefaultRoles=false",
            "operator.priorityClassName=system-cluster-critical",
        ],
    ],
)
def test_the_chart_renders_and_passes_helms_own_checks(settings: list[str]) -> None:
    options = [part for setting in settings for part in ("--set", setting)]
    run("helm", "lint", "--strict", ROOT / "charts/sandpod", *options)
    assert run("helm", "template", RELEASE, ROOT / "charts/sandpod", *options).stdout


def test_every_definition_stays_when_the_release_goes() -> None:
    definitions = get("crds", "-l", OURS)["items"]
    assert len(definitions) == 4
    for definition in definitions:
        assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
