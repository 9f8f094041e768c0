"""Requests that meet a sandbox in the moment in which it falls asleep, through the whole of the product."""

from tests.support import cluster
from tests.support.gateway_race import PREVIEW_SPEC, SPEC, Outcome, race
from tests.support.ingress import Ingress
from tests.support.preview_boxes import opened
from tests.support.sandboxes import Sandboxes
from tests.support.waiting import eventually

ROUNDS = 30


def test_no_request_is_lost_to_a_sandbox_that_falls_asleep(sandbox: Sandboxes) -> None:
    names = ["racer-1", "racer-2", "racer-3"]
    for box in [sandbox(name, **SPEC) for name in names]:
        # Once it has been ready; it may be asleep again by now.
        eventually(lambda box=box: box.status().get("phase") in ("Running", "Asleep"), timeout=60)

    outcome = race(cluster.api_client, namespace=sandbox.namespace, names=names, rounds=ROUNDS)

    nothing_was_lost(outcome, sandboxes=len(names))


def test_no_visitor_of_a_preview_is_lost_to_a_sandbox_that_falls_asleep(
    sandbox: Sandboxes, ingress: Ingress
) -> None:
    names = ["racer-1", "racer-2", "racer-3"]
    boxes = [sandbox(name, **PREVIEW_SPEC) for name in names]
    previews = {box.name: opened(ingress, box).client for box in boxes}

    outcome = race(
        cluster.api_client, namespace=sandbox.namespace, names=names, rounds=ROUNDS, previews=previews
    )

    nothing_was_lost(outcome, sandboxes=len(names))


def nothing_was_lost(outcome: Outcome, *, sandboxes: int) -> None:
    assert outcome.failures == []
    assert outcome.phases == {"Asleep": sandboxes}
    # There was something to be lost.
    assert outcome.waited > 0
    assert outcome.wakes > 0
