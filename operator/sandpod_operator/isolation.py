"""The condition Isolated: what stands between a sandbox's commands and the rest, of which the pod is one half
and the network the other. Pure.
"""

from enum import StrEnum
from typing import Final

from sandpod_crds.models import Condition, SandboxSpec
from sandpod_crds.names import ConditionType

from .conditions import Verdict, verdict
from .observations import Walls
from .reasons import SENTENCES, Reason

# In the status, of a runtime that could do all that Strict asks for.
COMPLETE: Final = "Complete"
ENFORCED_SENTENCE: Final = "The cluster enforces its NetworkPolicy."
UNKNOWN_SENTENCE: Final = "Whether the cluster enforces its NetworkPolicy is not known."


class Enforcement(StrEnum):
    """Whether NetworkPolicies have an effect in this cluster."""

    # This process has not found out yet.
    UNTOLD = "Untold"
    ENFORCED = "Enforced"
    NOT_ENFORCED = "NotEnforced"
    UNKNOWN = "Unknown"


def reached(walls: Walls | None) -> str | None:
    """What the status says of a runtime's isolation; None when it was not asked for any."""
    if walls is None or not walls.strict:
        return None
    return COMPLETE if walls.complete else walls.reason or "the runtime does not say why."


def isolation_of_pod(spec: SandboxSpec, *, isolation: str | None) -> Verdict:
    """`isolation` is what the status says."""
    kind = ConditionType.ISOLATED
    if spec.isolation != "Strict":
        return verdict(kind, True, Reason.STANDARD)
    if isolation == COMPLETE:
        return verdict(kind, True, Reason.STRICT)
    if isolation is None:
        return verdict(kind, False, Reason.UNCHECKED)
    return verdict(kind, False, Reason.INCOMPLETE, isolation)


def isolation_verdict(given: Verdict, *, enforcement: Enforcement, said: Condition | None) -> Verdict:
    """`given` is the verdict about the pod itself; this is the one about pod and network. `said` is the
    condition in the status, which outlasts the operator's process: a restart rewrites none of them.
    """
    if enforcement is Enforcement.UNTOLD:
        enforcement = _said(said)
    if enforcement is Enforcement.NOT_ENFORCED:
        reason = Reason.NOT_ENFORCED if given.holds else given.reason
        message = f"{SENTENCES[Reason.NOT_ENFORCED]} {given.message}"
        return given._replace(holds=False, reason=reason, message=message)
    addition = ENFORCED_SENTENCE if enforcement is Enforcement.ENFORCED else UNKNOWN_SENTENCE
    return given._replace(message=f"{given.message} {addition}")


def _said(condition: Condition | None) -> Enforcement:
    message = condition.message if condition is not None else ""
    if message.startswith(SENTENCES[Reason.NOT_ENFORCED]):
        return Enforcement.NOT_ENFORCED
    return Enforcement.ENFORCED if message.endswith(ENFORCED_SENTENCE) else Enforcement.UNKNOWN
