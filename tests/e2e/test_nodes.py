"""Nodes that are cleared or fall silent: sandboxes go on elsewhere with their files, or say what keeps them.

On a cluster of two nodes of its own. Sandboxes begin on the worker, which is the node that things happen to.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.support.aftermath import nothing_doubled_nothing_left
from tests.support.cluster import Json, apply, get, kubectl, proxy_path
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.two_nodes import (
    KEEPER,
    OUT_OF_SERVICE,
    WORKER,
    containers_on,
    cordoned,
    drain,
    silent,
    volume,
)
from tests.support.waiting import eventually

# The first test waits for the cluster too.
pytestmark = [pytest.mark.usefixtures("two_nodes_in_use"), pytest.mark.timeout(1200)]

SLOW = 240
# The node controller waits five minutes for a node unless a pod is in a greater hurry.
HURRY: Json = {
    "tolerations": [
        {
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 0,
        }
        for trouble in ("not-ready", "unreachable")
    ],
    "podTemplate": {"spec": {"terminationGracePeriodSeconds": 1}},
}


def node_of(box: Sandbox) -> str:
    return box.pod()["spec"].get("nodeName", "")


def pods_of(box: Sandbox) -> list[Json]:
    found: list[Json] = get("pods", "-n", box.namespace, "-l", f"app.kubernetes.io/instance={box.name}")[
        "items"
    ]
    return found


def comes_back_on(node: str, box: Sandbox) -> None:
    def there() -> bool:
        return box.condition().get("status") == "True" and node_of(box) == node

    eventually(there, timeout=SLOW, every=0.5)


def test_a_drain_waits_for_those_who_work_and_moves_the_others_with_their_files(sandbox: Sandboxes) -> None:
    files = volume("files", namespace=sandbox.namespace)
    with cordoned(KEEPER):
        working = sandbox("working", sleepAfter="1h")
        service = sandbox("service", keepAlive=True, workspace=files)
        asleep = sandbox("asleep", sleepAfter="1s")
        for box in (working, service):
            box.wait(timeout=SLOW)
            assert node_of(box) == WORKER
        asleep.falls_asleep(timeout=SLOW)
    service.exec("sh", "-c", "echo kept > /workspace/f")
    pod: str = working.status()["podUID"]

    with cordoned(WORKER):
        done, said = drain(WORKER, seconds=15)
        assert not done
        assert "disruption budget" in said
        comes_back_on(KEEPER, service)
        assert service.output("cat /workspace/f") == "kept"
        assert (working.status()["podUID"], working.status()["phase"]) == (pod, "Running")
        assert working.output("hostname") == "working"

        working.apply(sleepAfter="1s")
        working.falls_asleep(timeout=SLOW)
        assert drain(WORKER, seconds=60)[0]
        for box in (working, asleep):
            box.apply(sleepAfter="1h")
            assert box.wake().output("hostname") == box.name
            assert node_of(box) == KEEPER
    nothing_doubled_nothing_left(sandbox)


@pytest.fixture
def drains_wait_for_nobody(namespace: str) -> None:
    """The namespace's people have put a budget of their own where ours would be."""
    budget: Json = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "sandpod-sandboxes", "namespace": namespace},
        "spec": {"minAvailable": 0, "selector": {}},
    }
    apply(budget)


def seconds_without_work(box: Sandbox) -> float:
    """Of one that would sleep after an hour of them, by its own clock. To ask is no work."""
    path = proxy_path(namespace=box.namespace, name=box.name, path="api/lifecycle")
    return 3600 - json.loads(kubectl("get", "--raw", path).stdout).get("secondsLeft", 3600)


def test_a_drain_that_does_not_wait_puts_to_sleep_whom_nobody_works_in(
    drains_wait_for_nobody: None, sandbox: Sandboxes
) -> None:
    files = volume("files", namespace=sandbox.namespace)
    with cordoned(KEEPER):
        quiet = sandbox("quiet", sleepAfter="1h", workspace=files).wait(timeout=SLOW)
        busy = sandbox("busy", sleepAfter="1h").wait(timeout=SLOW)
        for box in (quiet, busy):
            assert node_of(box) == WORKER
    quiet.exec("sh", "-c", "echo kept > /workspace/f")
    # A minute counts as quiet; times are told in whole seconds.
    eventually(lambda: seconds_without_work(quiet) > 62, timeout=SLOW, every=1)
    busy.exec("true")

    with cordoned(WORKER):
        assert drain(WORKER, seconds=60)[0]
        assert quiet.falls_asleep(timeout=SLOW)["sleepReason"] == "Node"
        assert "nobody worked in it" in quiet.condition()["message"]
        comes_back_on(KEEPER, busy)
        # Nobody has asked for it yet.
        assert quiet.status()["phase"] == "Asleep"

        assert quiet.output("cat /workspace/f") == "kept"
        assert node_of(quiet) == KEEPER
    assert "restarts" not in quiet.status()
    nothing_doubled_nothing_left(sandbox)


def test_a_sandbox_whose_volume_cannot_leave_its_node_says_so_and_starts_when_the_node_is_back(
    sandbox: Sandboxes,
) -> None:
    here = volume("files", namespace=sandbox.namespace, only_on=WORKER)
    box = sandbox(keepAlive=True, workspace=here).wait(timeout=SLOW)
    box.exec("sh", "-c", "echo kept > /workspace/f")

    with cordoned(WORKER):
        assert drain(WORKER, seconds=60)[0]
        said: str = box.fails_with("VolumeElsewhere", timeout=SLOW)["message"]
        assert "PersistentVolumeClaim files" in said
        assert "uncordon" in said
    comes_back_on(WORKER, box)
    assert box.output("cat /workspace/f") == "kept"
    nothing_doubled_nothing_left(sandbox)


@dataclass(frozen=True)
class Lost:
    """Sandboxes of a node that has fallen silent."""

    plain: Sandbox
    with_files: Sandbox
    # Until it is closed.
    silence: ExitStack


@pytest.fixture(scope="module")
def lost(two_nodes_in_use: None, shared_sandbox: Sandboxes) -> Iterator[Lost]:
    files = volume("files", namespace=shared_sandbox.namespace)
    with cordoned(KEEPER):
        plain = shared_sandbox("plain", keepAlive=True, **HURRY).wait(timeout=SLOW)
        with_files = shared_sandbox("with-files", keepAlive=True, workspace=files, **HURRY).wait(timeout=SLOW)
    with_files.exec("sh", "-c", "echo kept > /workspace/f && sync")
    with ExitStack() as silence:
        silence.enter_context(silent(WORKER))
        yield Lost(plain, with_files, silence)


def test_a_sandbox_on_a_node_that_fell_silent_says_so_and_starts_on_another(lost: Lost) -> None:
    # Kubernetes marks and deletes its pods at the same time: the operator may see both at once.
    said = lost.plain.told("NodeNotResponding", "PodDeleted", timeout=SLOW)
    assert "does not respond" in said or "NoExecute taint" in said
    comes_back_on(KEEPER, lost.plain)
    assert lost.plain.output("hostname") == "plain"


def test_one_with_files_waits_until_somebody_says_that_the_node_is_gone(lost: Lost) -> None:
    box = lost.with_files
    said: str = box.fails_with("NodeLost", timeout=SLOW)["message"]
    assert WORKER in said
    assert "out-of-service" in said
    kubectl("taint", "node", WORKER, OUT_OF_SERVICE)
    try:
        comes_back_on(KEEPER, box)
        assert box.output("cat /workspace/f") == "kept"
    finally:
        kubectl("taint", "node", WORKER, f"{OUT_OF_SERVICE}-")


def test_a_node_that_comes_back_finds_its_sandboxes_elsewhere(lost: Lost, shared_sandbox: Sandboxes) -> None:
    pods = [box.status()["podUID"] for box in (lost.plain, lost.with_files)]
    lost.silence.close()
    kubectl("wait", "node", WORKER, "--for=condition=Ready", f"--timeout={SLOW}s", timeout=SLOW + 30)

    # The kubelet ends what it still runs of pods that are gone.
    eventually(lambda: not containers_on(WORKER, lost.plain.namespace), timeout=SLOW, every=1)
    for box, pod in zip((lost.plain, lost.with_files), pods, strict=True):
        assert [each["metadata"]["uid"] for each in pods_of(box)] == [pod]
        assert box.output("hostname") == box.name
        assert node_of(box) == KEEPER
    nothing_doubled_nothing_left(shared_sandbox)
