"""What the platform team lets sandboxes have, and the walls around them."""

import contextlib
import json
from collections.abc import Generator, Iterator

import pytest

from tests.support.cluster import SYSTEM, Json, apply, control_plane_is_ready, get, kubectl, run
from tests.support.sandboxes import Sandboxes
from tests.support.waiting import eventually


@pytest.fixture
def policy(namespace: str) -> Iterator[str]:
    """The name of a SandboxPolicy for this test's namespace, which `put` makes."""
    yield namespace
    kubectl("delete", "sandboxpolicy", namespace, "--ignore-not-found")


def put(name: str, **spec: object) -> None:
    """The policy of the namespace of that name."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    metadata = {"name": name}
    body: Json = {"apiVersion": "sandpod.dev/v1alpha1", "kind": "SandboxPolicy", "metadata": metadata}
    apply({**body, "spec": {"namespaceSelector": selector, **spec}})


def test_a_sandbox_that_asks_for_too_much_is_told_which_policy_and_what_to_change(
    sandbox: Sandboxes, policy: str
) -> None:
    put(policy, maxResources={"memory": "512Mi"}, maxSleepAfter="1h")
    box = sandbox(sleepAfter="8h", resources={"limits": {"memory": "256Mi"}})
    said = box.fails_with("PolicyExceeded")["message"]
    assert f"SandboxPolicy {policy}" in said
    assert "sleepAfter" in said
    assert not kubectl("get", "pods", "-n", box.namespace).stdout

    box.apply(sleepAfter="30m", resources={"limits": {"memory": "256Mi"}}).wait()


def test_the_oldest_may_start_and_the_next_when_one_has_gone(sandbox: Sandboxes, policy: str) -> None:
    put(policy, maxSandboxes=1)
    first = sandbox("first").wait()
    second = sandbox("second")
    second.fails_with("PolicyExceeded")
    first.delete()

    second.wait()


def test_a_policy_that_becomes_stricter_stops_no_work(sandbox: Sandboxes, policy: str) -> None:
    box = sandbox(keepAlive=True).wait()
    before: str = box.status()["podUID"]
    put(policy, maxSleepAfter="1h", allowKeepAlive=False)
    eventually(lambda: box.condition("SpecHonored").get("reason") == "PolicyExceeded")
    eventually(lambda: box.status().get("sleepAfter") != "never")

    assert box.status()["podUID"] == before
    assert box.output("echo works") == "works"


def test_each_sandbox_has_its_own_wall_which_follows_the_spec_and_comes_back(sandbox: Sandboxes) -> None:
    def egress() -> list[Json]:
        return get("networkpolicy", "box-sandbox", "-n", sandbox.namespace)["spec"]["egress"]

    box = sandbox(network={"egress": "None"}).wait()
    closed = egress()
    pod = box.pod()["metadata"]
    policy = get("networkpolicy", "box-sandbox", "-n", box.namespace)
    assert pod["labels"].items() >= policy["spec"]["podSelector"]["matchLabels"].items()

    box.apply(network={"egress": "Restricted", "allow": [{"cidr": "203.0.113.0/24"}]})
    eventually(lambda: "203.0.113.0/24" in str(egress()))
    assert box.pod()["metadata"]["uid"] == pod["uid"]
    box.apply(network={"egress": "None"})
    eventually(lambda: egress() == closed)
    patch = '{"spec":{"egress":[{}]}}'
    kubectl("patch", "networkpolicy", "box-sandbox", "-n", box.namespace, "--type=merge", "-p", patch)
    eventually(lambda: egress() == closed)
    kubectl("delete", "networkpolicy", "box-sandbox", "-n", box.namespace)
    eventually(lambda: kubectl("get", "networkpolicy", "-n", box.namespace, "-o", "name").stdout)


def test_a_cluster_that_enforces_nothing_is_told_of(sandbox: Sandboxes) -> None:
    box = sandbox().wait()
    # The cluster of `make cluster` has no network plugin that enforces policies.
    eventually(lambda: box.condition("Isolated").get("reason") == "NotEnforced", timeout=120, every=0.5)
    assert "NetworkPolicies" in box.condition("Isolated")["message"]


# What a network plugin would make of the chart's NetworkPolicy for the operator, which leaves this port out.
# By the port alone: the operator's next pod has another address.
TABLE = "inet sandpod_test"
DROP = f"table {TABLE} {{ chain forward {{ type filter hook forward priority 0; tcp dport 9091 drop; }}; }}"


def on_each_node(*rules: str) -> None:
    """nftables takes all of these or none."""
    for node in get("nodes")["items"]:
        nft = ("docker", "exec", "-i", node["metadata"]["name"], "nft", "-f", "-")
        run(*nft, stdin="\n".join(rules))


def start_the_operator_anew() -> None:
    """It looks then, and otherwise once an hour."""
    kubectl("delete", "pod", "-n", SYSTEM, "-l", "app.kubernetes.io/component=operator")
    control_plane_is_ready()


@contextlib.contextmanager
def that_policy_enforced() -> Generator[None]:
    """There is no plugin here that would do it. Afterwards the operator finds what there was before."""
    # Of a run that was interrupted, there may be one; only a table that is there can be deleted.
    gone = (f"table {TABLE}", f"delete table {TABLE}")
    try:
        on_each_node(*gone, DROP)
        start_the_operator_anew()
        yield
    finally:
        on_each_node(*gone)
        start_the_operator_anew()


def test_a_cluster_that_enforces_policies_is_told_of_until_it_no_longer_does(
    sandbox: Sandboxes,
) -> None:
    box = sandbox().wait()

    def comes_to_say(status: str, reason: str, *, with_the_words: str) -> None:
        def said() -> bool:
            isolated = box.condition("Isolated")
            assert (isolated.get("status"), isolated.get("reason")) == (status, reason), isolated
            return with_the_words in isolated["message"]

        eventually(said, timeout=120, every=0.5)

    def comes_to_say_no() -> None:
        comes_to_say("False", "NotEnforced", with_the_words="does not enforce NetworkPolicies")

    comes_to_say_no()
    with that_policy_enforced():
        comes_to_say("True", "Standard", with_the_words="The cluster enforces its NetworkPolicy.")
    comes_to_say_no()


def test_a_drain_waits_for_sandboxes_that_work(sandbox: Sandboxes) -> None:
    box = sandbox().wait()
    eventually(box.holds_up_drains)
    eviction: Json = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": box.name, "namespace": box.namespace},
    }

    def refused() -> bool:
        path = f"/api/v1/namespaces/{box.namespace}/pods/{box.name}/eviction"
        done = kubectl("create", "--raw", path, "-f", "-", input=json.dumps(eviction), check=False)
        return "disruption budget" in done.stderr

    eventually(refused)
    box.delete()
    eventually(lambda: not kubectl("get", "pdb", "-n", box.namespace, "-o", "name").stdout, timeout=60)


def test_strict_keeps_commands_from_seeing_or_ending_the_runtime(sandbox: Sandboxes) -> None:
    box = sandbox(isolation="Strict", workspace={"size": "1Gi"}).wait()
    isolated = box.condition("Isolated")
    assert "neither see nor touch the runtime" in isolated["message"]
    seen = box.output("cat /proc/[0-9]*/comm")
    assert "sandpod" not in seen
    assert "python" not in seen
    box.exec("sh", "-c", "kill -9 -1; for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done", check=False)
    assert box.output("id -u") == "1000"
    assert box.exec("sh", "-c", "echo x > /workspace/.sandpod/x", check=False).returncode != 0
    assert box.output("echo mine > /workspace/f && stat -c %u /workspace/f") == "1000"


def test_root_in_strict_may_do_as_root_does(sandbox: Sandboxes) -> None:
    box = sandbox(isolation="Strict", user="root").wait()
    assert box.output("id -u; touch /etc/mine && chown 1000 /etc/mine && stat -c %u /etc/mine") == "0\n1000"
    assert "sandpod" not in box.output("cat /proc/[0-9]*/comm")
