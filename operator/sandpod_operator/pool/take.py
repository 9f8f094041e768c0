"""The phase of the lifecycle in which a sandbox takes a warm pod, and what is special about it until the
runtime in it has answered. Pure.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..errors import BadPodTemplate
from ..fence import fence_the_network
from ..kinds import POD
from ..plan import Plan, Verb, Write
from .claim import Cold, ColdStart, Order, Reading, claimed_metadata, judge, known_environment
from .environment import Environment, references
from .pace import is_burst
from .wall import network_id

if TYPE_CHECKING:
    from ..case import Case

# A warm pod answers in milliseconds. A status that says that it is starting would only be in the way.
PATIENCE = timedelta(seconds=3)
# So long after its claim a pod is told whose it is, when there was no time for that.
AFTER_THE_BURST = timedelta(seconds=10)


def take_a_warm_pod(case: "Case") -> Plan | None:
    """Its pool has a pod for it, or the sandbox starts cold and says why."""
    offer = case.offer
    if offer is None or case.pod is not None or case.status.pod_uid is not None:
        return None
    if case.start_at is not None or case.refusal is not None:
        return None
    try:
        found = judge(
            offer,
            sandbox=case.sandbox,
            spec=case.spec,
            environment=case.environment,
            installation=case.installation,
            now=case.now,
        )
        if isinstance(found, ColdStart) and (case.claim is None or found.why is Cold.MISMATCH):
            case.start_cold(found)
        if isinstance(found, ColdStart) or case.claim is not None:
            # Its files are in a volume of its own, which no warm pod has.
            return None
        if isinstance(found, Reading):
            return Plan(reading=found)
        behind = network_id(offer.pool.metadata.uid, case.spec.network)
        stays = found.network == behind
        # Behind a wall of its own, which has to stand before.
        plan = None if stays else fence_the_network(case)
        if plan is not None:
            return plan
        metadata = claimed_metadata(case.wanted_pod, stays_behind_wall=stays, now=case.now)
    except BadPodTemplate:
        # Said where a pod is to be made.
        return None
    order = Order(
        sandbox_uid=case.uid,
        pool=offer.pool,
        kind=found,
        metadata=metadata,
        may_follow=stays and _may_follow(case, claimed_lately=offer.claimed_lately),
    )
    return Plan(claim=order)


def _may_follow(case: "Case", *, claimed_lately: int) -> bool:
    """In a burst, a pod in which nothing runs before somebody asks for it, and which has no files: if nobody
    hears of this claim any more, nothing was done in it.
    """
    spec = case.spec
    burst = is_burst(claimed_lately, most_starting=case.settings.pools.most_starting)
    return burst and not (spec.processes or spec.setup or spec.workspace is not None)


def record_of_the_claim(case: "Case") -> Write | None:
    """What the pod has yet to be told, if it is time for that."""
    pod, metadata = case.pod, case.unwritten
    if pod is None or metadata is None or not case.bound or case.refusal_of_owner is not None:
        return None
    # Its labels are about to be others, which could not be told from these.
    changes = pod.protected != case.holds_up_drains and case.knows_files_and_network
    if record_due_at(case) is not None and not changes:
        return None
    return Write(verb=Verb.PATCH, kind=POD, name=pod.name, body={"metadata": {"uid": pod.uid, **metadata}})


def record_due_at(case: "Case") -> datetime | None:
    """When the pod is to be told whose it is; None when there is nothing to tell, or it is time."""
    pod = case.pod
    if pod is None or pod.claimed_at is None or case.unwritten is None:
        return None
    return case.still_to_come(pod.claimed_at + AFTER_THE_BURST, within=AFTER_THE_BURST)


def environment_of(case: "Case") -> Environment | Reading | None:
    """What the bind of a warm pod brings besides what stands in the spec; None when that is all."""
    pod = case.pod
    if pod is None or pod.claimed_at is None or not references(case.spec):
        return None
    return known_environment(case.environment, sandbox=case.sandbox, spec=case.spec, now=case.now)


def end_of_patience(case: "Case") -> datetime | None:
    """Until then the status of a sandbox that has just taken a pod need not say anything; None when that is
    over.
    """
    pod = case.pod
    if pod is None or pod.claimed_at is None or case.current:
        return None
    return case.still_to_come(pod.claimed_at + PATIENCE, within=PATIENCE)
