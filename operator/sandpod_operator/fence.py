"""The wall around a sandbox's network: its NetworkPolicy stands before its pod does, and follows the spec
while it runs. Pure.
"""

from typing import TYPE_CHECKING

from .kinds import NETWORK_POLICY
from .objects import Json
from .plan import Plan, Verb, Write
from .resources.network_policy import build_network_policy, is_as_wanted, policy_name

if TYPE_CHECKING:
    from .case import Case


def fence_the_network(case: "Case") -> Plan | None:
    pod, found = case.pod, case.network_policy
    # A warm pod stays behind its pool's wall.
    if pod is not None and pod.network_uid != case.uid:
        return None
    wanted = wanted_policy(case)
    if found is not None and is_as_wanted(found, wanted):
        return None
    refusal = case.refusal_of(NETWORK_POLICY)
    if refusal is None:
        name = wanted["metadata"]["name"]
        return case.write(Write(verb=Verb.APPLY, kind=NETWORK_POLICY, name=name, body=wanted))
    # No sandbox begins without its wall; one that runs goes on, and says so.
    return None if pod is not None else case.wait(refusal.reason, refusal.message, until=refusal.retry_at)


def wanted_policy(case: "Case") -> Json:
    metadata = case.sandbox.metadata
    return build_network_policy(
        case.spec.network,
        name=policy_name(metadata.name),
        namespace=metadata.namespace,
        owner=case.owner,
        selects_uid=case.uid,
        labels=case.labels,
        installation=case.installation,
    )
