"""Sandboxes that give the operator no rest: that fail for ever, or whose owner undoes all that it does. What
it asks of the API server stays bounded, and others are served as ever.
"""

import itertools
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

import httpx

from tests.support.cluster import Json, api_client, apply
from tests.support.operator_numbers import counted
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually
from tests.support.writes import writes_about

MERGE = {"Content-Type": "application/merge-patch+json"}
NETWORKING = "apis/networking.k8s.io/v1"
TOO_LITTLE: Json = {"limits": {"memory": "16Mi"}}
# Between two acts of an attacker, in seconds.
PAUSE = 0.1
ACTS = 100
FAILURES = 4
# What one start, or one thing that somebody does to a sandbox, may cost the API server and the operator.
MOST_WRITES = 6
MOST_PASSES = 12


class Attacker:
    """Does the same thing again and again, as fast as the API server answers and a little pause allows."""

    def __init__(self, act: Callable[[httpx.Client], httpx.Response]) -> None:
        self.acts = 0
        self._act = act
        self._end = threading.Event()

    @contextmanager
    def at_work(self) -> Generator["Attacker"]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            thread.join(60)

    def _run(self) -> None:
        with api_client() as client:
            while not self._end.wait(PAUSE):
                self.acts += self._act(client).is_success


def deleter(path: str) -> Attacker:
    body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    return Attacker(lambda client: client.request("DELETE", path, json=body))


def patcher(path: str, change: Callable[[int], Json]) -> Attacker:
    numbers = itertools.count(1)
    return Attacker(lambda client: client.patch(path, json=change(next(numbers)), headers=MERGE))


def path_of(
    box: Sandbox, plural: str = "sandboxes", *, group: str = "apis/sandpod.dev/v1alpha1", suffix: str = ""
) -> str:
    return f"/{group}/namespaces/{box.namespace}/{plural}/{box.name}{suffix}"


def passes() -> float:
    """How often the operator has looked at a sandbox: what it reads, it reads in these."""
    return counted("sandpod_operator_reconciles_total")


def test_sandboxes_that_fail_for_ever_cost_ever_less(sandbox: Sandboxes) -> None:
    quota: Json = {"hard": {"persistentvolumeclaims": "0"}}
    metadata = {"name": "none", "namespace": sandbox.namespace}
    apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": quota})
    bad = {"spec": {"containers": [{"name": "sandbox", "imagePullPolicy": "Sometimes"}]}}
    before = passes()
    crashing = sandbox("crashing", resources=TOO_LITTLE)
    over_quota = sandbox("over-quota", workspace={"size": "1Gi"})
    mistaken = sandbox("mistaken", podTemplate=bad)
    eventually(lambda: crashing.status().get("startFailures", 0) >= FAILURES, timeout=180, every=0.5)

    # Each pause is twice the one before: so many in the first seconds are few in the hours to come.
    assert writes_about(crashing) <= MOST_WRITES * (FAILURES + 1)
    assert writes_about(over_quota) <= MOST_WRITES * (FAILURES + 1)
    assert writes_about(mistaken) <= MOST_WRITES
    assert passes() - before <= MOST_PASSES * FAILURES * 3


def test_whoever_undoes_all_that_is_done_keeps_nobody_busier_than_himself(sandbox: Sandboxes) -> None:
    hopeless = sandbox("hopeless", resources=TOO_LITTLE)
    robbed, restless, relabelled, unfenced, wanted = (
        sandbox(name).wait(timeout=120) for name in ("robbed", "restless", "relabelled", "unfenced", "wanted")
    )
    attackers = {
        robbed: deleter(path_of(robbed, "pods", group="api/v1")),
        unfenced: deleter(path_of(unfenced, "networkpolicies", group=NETWORKING, suffix="-sandbox")),
        relabelled: patcher(path_of(relabelled, "pods", group="api/v1"), unmarked),
        restless: patcher(path_of(restless), another_spec),
        hopeless: patcher(path_of(hopeless), another_spec),
        wanted: patcher(path_of(wanted), another_wake),
    }
    before, looks = {box: writes_about(box) for box in attackers}, passes()
    with ExitStack() as stack:
        for attacker in attackers.values():
            stack.enter_context(attacker.at_work())
        eventually(lambda: attackers[restless].acts >= ACTS, timeout=180, every=0.5)
        assert sandbox("bystander").wait(timeout=120).output("echo served") == "served"
    looks = passes() - looks
    acts = sum(attacker.acts for attacker in attackers.values())

    for box, attacker in attackers.items():
        assert writes_about(box) - before[box] <= MOST_WRITES * (attacker.acts + 1)
    assert looks <= MOST_PASSES * acts


def another_spec(number: int) -> Json:
    return {"spec": {"env": [{"name": "N", "value": str(number)}]}}


def another_wake(number: int) -> Json:
    return {"metadata": {"annotations": {"sandpod.dev/wake-requested-at": str(number)}}}


def unmarked(number: int) -> Json:
    """A pod without the words that the operator has left on it."""
    gone = {f"sandpod.dev/{name}": None for name in ("pod-hash", "spec-hash")}
    return {"metadata": {"annotations": {**gone, "example.com/number": str(number)}}}
