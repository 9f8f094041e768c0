"""What the operator has seen besides the API's objects: a runtime's answer, an API server's refusal of a pod.
They live in the Store only; whatever has to outlast the process goes into the status.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from .reasons import Reason


class Key(NamedTuple):
    """What the work queue holds: a sandbox by name. Its pod has the same name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Answered(StrEnum):
    BOUND = "Bound"
    # The pod is not one that we can hold: its bind token is not ours, or it is bound to somebody else.
    REFUSED = "BindRefused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the runtime of one pod said when it was asked to be bound."""

    pod_uid: str
    outcome: Answered
    at: datetime
    version: str = ""
    # Of the spec whose environment and lifecycle the runtime holds; empty when somebody before us bound it.
    spec_hash: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The API server did not take the sandbox's pod, for a reason that trying at once does not change."""

    sandbox_uid: str
    generation: int
    reason: Reason
    message: str
    retry_at: datetime
    # How often in a row, for this reason.
    tries: int = 1
