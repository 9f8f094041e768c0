"""What has to be so after every fault, whatever it was: nothing doubled, nothing left over, no hot loop."""

from collections import Counter

from tests.support.cluster import Json, get
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually
from tests.support.writes import busiest_minute

# About one sandbox: a start and a loss cost six each, and a test may do a few things to it within a minute.
MOST_WRITES_A_MINUTE = 40


def nothing_doubled_nothing_left(sandboxes: Sandboxes) -> None:
    """In their namespace, for all that are there. What is being removed may take its time."""

    def in_order() -> bool:
        there = {each["metadata"]["uid"]: each for each in _all("sandboxes", sandboxes.namespace)}
        children = _all("pods,persistentvolumeclaims,networkpolicies", sandboxes.namespace)
        owned = [(each, owner) for each in children if (owner := _sandbox_of(each)) is not None]
        left = [_name(each) for each, owner in owned if owner not in there]
        assert not left, f"nobody's any more: {left}"
        numbers = Counter((owner, each["kind"]) for each, owner in owned)
        doubled = {kind: number for kind, number in numbers.items() if number > 1}
        assert not doubled, [_name(each) for each, _ in owned]
        pods = {owner: each["metadata"]["uid"] for each, owner in owned if each["kind"] == "Pod"}
        known = {uid: pod for uid, each in there.items() if (pod := each.get("status", {}).get("podUID"))}
        assert pods == known, f"pods {pods}, as the statuses say {known}"
        return True

    eventually(in_order, timeout=120, every=0.5)
    for each in _all("sandboxes", sandboxes.namespace):
        writes = busiest_minute(Sandbox(each["metadata"]["name"], sandboxes.namespace))
        assert writes <= MOST_WRITES_A_MINUTE, f"{writes} writes about {_name(each)} within a minute"


def _all(kinds: str, namespace: str) -> list[Json]:
    return get(kinds, "-n", namespace)["items"]


def _sandbox_of(child: Json) -> str | None:
    """The UID of the sandbox that it belongs to."""
    owners: list[Json] = child["metadata"].get("ownerReferences", [])
    return next((each["uid"] for each in owners if each["kind"] == "Sandbox"), None)


def _name(obj: Json) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"
