"""What a Sandbox object says about itself, in the few words that a person or a program waits for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """Phase, and the Ready condition. `warning`: what the sandbox's spec asks for and does not get."""

    phase: str
    ready: bool
    reason: str
    message: str
    warning: str = ""

    def __str__(self) -> str:
        said = ": ".join(part for part in (self.reason, self.message) if part)
        # Some reasons only repeat the phase.
        return said if self.reason == self.phase else f"{self.phase}, {said}" if said else self.phase


def observe(sandbox: Json) -> Observation:
    status: Json = sandbox.get("status") or {}
    ready = condition(sandbox, "Ready")
    honored = condition(sandbox, "SpecHonored")
    metadata: Json = sandbox.get("metadata") or {}
    deleting = bool(metadata.get("deletionTimestamp"))
    return Observation(
        phase="Terminating" if deleting else str(status.get("phase") or "Pending"),
        ready=ready.get("status") == "True" and not deleting,
        reason=str(ready.get("reason") or ""),
        message=str(ready.get("message") or ""),
        warning=str(honored.get("message") or "") if honored.get("status") == "False" else "",
    )


def condition(sandbox: Json, kind: str) -> Json:
    """The condition of that type, or nothing."""
    status: Json = sandbox.get("status") or {}
    conditions: list[Json] = status.get("conditions") or []
    found = [each for each in conditions if each.get("type") == kind]
    return found[0] if found else {}
