"""The platform team's say in the lifecycle: no start against a SandboxPolicy. What runs goes on, and its
owner is told what the next start will be refused for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpod_crds.models import SandboxPolicy

from .errors import BadPodTemplate
from .objects import Json, key_of, section
from .observations import Key
from .plan import Plan
from .policy import Denial, Standing, in_force, judge
from .reasons import Reason
from .store import Store

if TYPE_CHECKING:
    from .case import Case


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What holds for one sandbox."""

    policies: tuple[SandboxPolicy, ...] = ()
    # How many sandboxes of its namespace are older.
    older: int = 0
    # Which policies hold, the namespace's labels say.
    known: bool = True


def find_rules(store: Store, sandbox: Json) -> Rules:
    policies = policies_in(key_of(sandbox).namespace, store=store)
    if policies is None:
        return Rules(known=False)
    return Rules(policies=policies, older=store.census.older(sandbox) if policies else 0)


def policies_in(namespace: str, *, store: Store) -> tuple[SandboxPolicy, ...] | None:
    """None as long as nobody knows the namespace's labels."""
    policies = [policy for key in store.policies if (policy := store.policies.get(key)) is not None]
    if not policies:
        return ()
    found = store.namespaces.get(Key("", namespace))
    return in_force(policies, labels=section(found["metadata"], "labels")) if found is not None else None


def ask_permission(case: "Case") -> Plan | None:
    """A pod that is there stays, whatever the policies say by now."""
    if case.pod is not None:
        return None
    if not case.rules.known:
        # The watch is about to bring the namespace, and this sandbox is looked at again then.
        return Plan()
    denial = case.denial
    return case.wait(Reason.POLICY_EXCEEDED, denial.message) if denial is not None else None


def denial_of(case: "Case") -> Denial | None:
    """What the next start would be refused for."""
    if not case.rules.policies or not case.knows_files_and_network:
        return None
    try:
        pod = case.wanted_pod
    except BadPodTemplate:
        # No pod can be made of it. Its volume can, and its wall, which follows the spec while it runs.
        pod = None
    claim = case.claim
    standing = Standing(older=case.rules.older, volume=claim.size if claim is not None else None)
    return judge(
        case.spec,
        pod=pod,
        policies=case.rules.policies,
        standing=standing,
        installation=case.installation,
    )
