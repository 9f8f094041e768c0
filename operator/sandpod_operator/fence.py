"""The wall around a sandbox's network: its NetworkPolicy stands before its pod does, and follows the spec
while it runs. Pure.
"""

from typing import TYPE_CHECKING

from sandpod_crds.models.network import Network
from sandpod_crds.names import LABEL_NETWORK

from .kinds import NETWORK_POLICY, POD
from .objects import Json, replacing, section, uid_of
from .plan import Plan, Verb, Write
from .pool.wall import network_id
from .reasons import Reason
from .refusals import stranger
from .resources.network_policy import (
    build_network_policy,
    is_a_wall,
    is_as_wanted,
    policy_name,
    pool_policy_name,
)

if TYPE_CHECKING:
    from .case import Case


def fence_the_network(case: "Case") -> Plan | None:
    pod, found = case.pod, case.network_policy
    if not case.knows_files_and_network:
        # Its template, which is gone, may have wanted a closer wall than the one that we would build.
        return None
    if _is_behind_its_pools_wall(case):
        return None
    # What a policy forbids does not work before a start was allowed with it; the wall that stands stays.
    walled = case.wall is not None
    if pod is not None and (found is not None or walled) and case.forbids("network"):
        return None if walled else _come_over(case)
    wanted = wanted_policy(case)
    if found is not None and is_as_wanted(found, wanted):
        return _come_over(case)
    if case.others_behind:
        # To make it ours would be to let them out. Their pod's end is told.
        return None if pod is not None else case.wait(Reason.EARLIER_POD)
    refusal = case.refusal_of(NETWORK_POLICY)
    if refusal is None:
        return case.write(_put_up(found, wanted, case))
    # No sandbox begins without its wall; one that runs goes on, and says so.
    return None if pod is not None else case.wait(refusal.reason, refusal.message, until=refusal.retry_at)


def network_trouble(case: "Case") -> tuple[Reason, str] | None:
    """Why the network of a pod that is there may not be as it should be."""
    refusal = case.refusal_of(NETWORK_POLICY)
    if case.pod is None:
        return None
    if refusal is not None:
        return refusal.reason, refusal.message
    return (Reason.EARLIER_WALL, "") if case.others_behind and not _is_behind_its_pools_wall(case) else None


def take_down(found: Json | None) -> tuple[Write, ...]:
    """What stands for a sandbox that is gone. What has an owner is not as we make it."""
    if found is None or not is_a_wall(found) or "deletionTimestamp" in found["metadata"]:
        return ()
    metadata = found["metadata"]
    return (Write(verb=Verb.DELETE, kind=NETWORK_POLICY, name=metadata["name"], uid=uid_of(found)),)


def _put_up(found: Json | None, wanted: Json, case: "Case") -> Write:
    """Over what is ours, or was an earlier sandbox's; never over what somebody else has put there, which the
    watch does not show.
    """
    metadata = wanted["metadata"]
    if found is None or stranger(found, sandbox_uid=case.uid, heirless=True) is not None:
        return Write(verb=Verb.CREATE, kind=NETWORK_POLICY, name=metadata["name"], body=wanted)
    body: Json = {
        "metadata": {**metadata, "uid": uid_of(found)},
        "spec": replacing(section(found, "spec"), wanted["spec"]),
    }
    return Write(verb=Verb.PATCH, kind=NETWORK_POLICY, name=metadata["name"], body=body)


def _is_behind_its_pools_wall(case: "Case") -> bool:
    """It stands for as long as somebody is behind it, and does for a sandbox that wants the same network. Of
    an old one, nobody sees to it that it says what it should.
    """
    pod, wall = case.pod, case.wall
    if pod is None or pod.pool_uid is None or wall is None:
        return False
    right = pod.network_uid == network_id(pod.pool_uid, case.spec.network)
    return right and wall.get("spec") == _right_wall(pod.network_uid, case)["spec"]


def _right_wall(behind: str, case: "Case") -> Json:
    network, metadata = case.spec.network, case.sandbox.metadata
    return case.installation.memo.recall(
        # One for all that have come from the pool with this network.
        ("wall", behind),
        (network, metadata.namespace),
        lambda: build_network_policy(
            network,
            name=pool_policy_name(behind),
            namespace=metadata.namespace,
            selects_uid=behind,
            labels={},
            installation=case.installation,
        ),
    )


def _come_over(case: "Case") -> Plan | None:
    """From behind the pool's wall, when the sandbox's own stands."""
    pod = case.pod
    if pod is None or pod.network_uid == case.uid or case.refusal_of_labels is not None:
        return None
    metadata: Json = {"uid": pod.uid, "labels": {LABEL_NETWORK: case.uid}}
    return case.write(Write(verb=Verb.PATCH, kind=POD, name=pod.name, body={"metadata": metadata}))


def wanted_policy(case: "Case") -> Json:
    metadata = case.sandbox.metadata
    # Whatever stood before the policy forbade this network is gone.
    network = Network(egress="None") if case.forbids("network") else case.spec.network
    labels = case.labels
    return case.installation.memo.recall(
        ("policy", case.uid),
        (network, labels),
        lambda: build_network_policy(
            network,
            name=policy_name(metadata.name),
            namespace=metadata.namespace,
            selects_uid=case.uid,
            labels=labels,
            installation=case.installation,
        ),
    )
