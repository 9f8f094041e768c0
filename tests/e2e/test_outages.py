"""The API server away and back in the middle of things: afterwards all is as if it had never been away.

On the cluster of two nodes, whose API server is nobody else's.
"""

import pytest

from tests.support.aftermath import nothing_doubled_nothing_left
from tests.support.cluster import Json, get, kubectl
from tests.support.pools import ask_at_once, filled, lends, pool, template
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.two_nodes import kill_the_api_server
from tests.support.waiting import eventually

# The first test waits for the cluster too.
pytestmark = [pytest.mark.usefixtures("two_nodes_in_use"), pytest.mark.timeout(1200)]

SLOW = 240
FILES: Json = {"workspace": {"size": "1Gi"}}


def pods_and_owners(namespace: str) -> list[str]:
    pods = get("pods", "-n", namespace)["items"]
    return sorted(pod["metadata"]["ownerReferences"][0]["name"] for pod in pods)


def test_starts_sleeps_and_wakes_under_way_end_as_they_would_have(sandbox: Sandboxes) -> None:
    waking = [sandbox(f"waking-{i}", sleepAfter="1s", **FILES) for i in range(2)]
    for box in waking:
        box.falls_asleep(timeout=SLOW)
        box.apply(sleepAfter="1h", **FILES)
    sleeping = [sandbox(f"sleeping-{i}", sleepAfter="1h").wait(timeout=SLOW) for i in range(2)]

    for box in sleeping:
        box.apply(sleepAfter="1s")
    for box in waking:
        kubectl("annotate", "sandbox", box.name, "-n", box.namespace, "sandpod.dev/wake-requested-at=now")
    starting = [sandbox(f"starting-{i}") for i in range(3)]
    kill_the_api_server()

    for box in (*starting, *waking):
        box.wait(timeout=SLOW)
        assert box.output("hostname") == box.name
    for box in sleeping:
        box.falls_asleep(timeout=SLOW)
    assert pods_and_owners(sandbox.namespace) == sorted(box.name for box in (*starting, *waking))
    for box in waking:
        assert (box.status()["wakes"], box.status()["wakeObserved"]) == (1, "now")
    for box in (*starting, *sleeping, *waking):
        assert not box.status().get("restarts")
        assert not box.status().get("startFailures")
    nothing_doubled_nothing_left(sandbox)


def test_a_burst_of_claims_under_way_ends_as_it_would_have(sandbox: Sandboxes) -> None:
    namespace, names = sandbox.namespace, [f"box-{number}" for number in range(8)]
    template(namespace)
    pool(namespace, replicas=len(names))
    filled(namespace, len(names))

    ask_at_once(namespace, names)
    kill_the_api_server()

    boxes = [Sandbox(name=name, namespace=namespace).wait(timeout=SLOW) for name in names]
    for box in boxes:
        assert box.output("echo $((6 * 7))") == "42"
    served = [box.status()["podUID"] for box in boxes]
    assert len(set(served)) == len(boxes)

    eventually(lambda: not lends(namespace), timeout=SLOW)
    filled(namespace, len(names))
    assert [box.status()["podUID"] for box in boxes] == served
    # A pod that the pool has replaced may still be on its way out.
    everybody = sorted([*names, *["warm"] * len(names)])
    eventually(lambda: pods_and_owners(namespace) == everybody, timeout=SLOW)
    nothing_doubled_nothing_left(sandbox)
