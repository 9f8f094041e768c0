"""What a condition is, and the one that follows from the spec alone: which of its fields have an effect.
Nothing that a user sets is ignored in silence.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sandpod_crds.models import Condition, SandboxSpec
from sandpod_crds.names import ConditionType

from .reasons import SENTENCES, Names, Reason, sentence


class Verdict(NamedTuple):
    type: ConditionType
    holds: bool
    reason: Reason
    message: str


def verdict(
    kind: ConditionType, holds: bool, reason: Reason, detail: str = "", *, names: Names | None = None
) -> Verdict:
    return Verdict(kind, holds, reason, sentence(reason, names=names or Names(), detail=detail))


def condition(
    kind: str,
    *,
    holds: bool,
    reason: str,
    message: str,
    before: Condition | None,
    now: datetime,
    generation: int,
) -> Condition:
    """As it goes into a status. Its time is that of the last change between True and False."""
    status = "True" if holds else "False"
    since = before.last_transition_time if before is not None and before.status == status else None
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since or now,
        observed_generation=generation,
    )


def honored(
    spec: SandboxSpec, *, overridden: Sequence[str], restart_pending: str | None, denied: str | None = None
) -> Verdict:
    found: list[tuple[Reason, str]] = []
    if spec.user == "root" and spec.isolation != "Strict":
        without_effect = "No effect in this version: user (root needs isolation: Strict)."
        found.append((Reason.NOT_IMPLEMENTED, without_effect))
    if overridden:
        found.append((Reason.OVERRIDDEN, f"Set by Sandpod, whatever the spec says: {', '.join(overridden)}."))
    if denied is not None:
        found.append((Reason.POLICY_EXCEEDED, f"It goes on, but its next start will be refused: {denied}"))
    if restart_pending is not None:
        found.append((Reason.RESTART_PENDING, restart_pending))
    if not found:
        return Verdict(ConditionType.SPEC_HONORED, True, Reason.ALL_FIELDS, SENTENCES[Reason.ALL_FIELDS])
    message = " ".join(sentence for _, sentence in found)
    return Verdict(ConditionType.SPEC_HONORED, False, found[0][0], message)
