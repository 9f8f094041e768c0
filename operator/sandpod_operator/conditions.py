"""What a condition is, and those that follow from the spec alone: which of its fields have an effect in this
version, and what holds for previews. Nothing that a user sets is ignored in silence.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sandpod_crds.models import Condition, SandboxSpec
from sandpod_crds.names import ConditionType

from .reasons import SENTENCES, Names, Reason, sentence

# Fields that the CRD has and this version does not act on.
NOT_IMPLEMENTED = ("ports",)


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


def verdicts(
    spec: SandboxSpec, *, overridden: Sequence[str], restart_pending: str | None, denied: str | None = None
) -> Iterator[Verdict]:
    yield _honored(spec, overridden=overridden, restart_pending=restart_pending, denied=denied)
    if spec.ports:
        yield _not_yet(ConditionType.PREVIEW_READY, "ports: there are no preview URLs")
    else:
        yield _good(ConditionType.PREVIEW_READY, Reason.NO_PORTS)


def _honored(
    spec: SandboxSpec, *, overridden: Sequence[str], restart_pending: str | None, denied: str | None
) -> Verdict:
    without_effect = list(_without_effect(spec))
    found: list[tuple[Reason, str]] = []
    if without_effect:
        found.append((Reason.NOT_IMPLEMENTED, f"No effect in this version: {', '.join(without_effect)}."))
    if overridden:
        found.append((Reason.OVERRIDDEN, f"Set by Sandpod, whatever the spec says: {', '.join(overridden)}."))
    if denied is not None:
        found.append((Reason.POLICY_EXCEEDED, f"It goes on, but its next start will be refused: {denied}"))
    if restart_pending is not None:
        found.append((Reason.RESTART_PENDING, restart_pending))
    if not found:
        return _good(ConditionType.SPEC_HONORED, Reason.ALL_FIELDS)
    message = " ".join(sentence for _, sentence in found)
    return Verdict(ConditionType.SPEC_HONORED, False, found[0][0], message)


def _without_effect(spec: SandboxSpec) -> Iterator[str]:
    fields = type(spec).model_fields
    for name in NOT_IMPLEMENTED:
        # An explicit default asks for nothing.
        if getattr(spec, name) != fields[name].default:
            yield fields[name].alias or name
    if spec.user == "root" and spec.isolation != "Strict":
        yield "user (root needs isolation: Strict)"


def _good(condition: ConditionType, reason: Reason) -> Verdict:
    return Verdict(condition, True, reason, SENTENCES[reason])


def _not_yet(condition: ConditionType, what: str) -> Verdict:
    return Verdict(condition, False, Reason.NOT_IMPLEMENTED, f"This version does not act on {what}.")
