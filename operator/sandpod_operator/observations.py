"""What the operator has seen besides the API's objects: a runtime's answer, an API server's refusal of a pod.
They live in the Store only; whatever has to outlast the process goes into the status.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from .reasons import Reason


class Key(NamedTuple):
    """What the work queue holds: a sandbox by name. Its pod has the same name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Errand(StrEnum):
    """What the operator may have to say to a runtime."""

    # Be ours.
    BIND = "Bind"
    # Tell how the setup goes, until it has ended.
    SETUP = "Setup"
    # Go to sleep.
    SLEEP = "Sleep"
    # Somebody wants the sandbox awake: stay, unless you have begun to sleep.
    STAY = "Stay"
    # Sleep after another time from now on.
    ADJUST = "Adjust"
    # The kubelet says that you are not ready: is the disk full?
    CHECK = "Check"


class Outcome(StrEnum):
    DONE = "Done"
    # To a bind: the pod is not one that we can hold, its bind token is not ours or it is bound to somebody
    # else. To others: not any more, the runtime is going to sleep.
    REFUSED = "Refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Walls:
    """How far a runtime could keep its user's commands apart from itself."""

    strict: bool = False
    complete: bool = True
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetupResult:
    state: Literal["Running", "Succeeded", "Failed"]
    message: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the runtime of one pod said to an errand. Code in the sandbox may have had a hand in it."""

    pod_uid: str
    errand: Errand
    outcome: Outcome
    at: datetime
    # What the errand was about: the wake request, the time to sleep after, since when it is not ready.
    subject: str = ""
    message: str = ""
    # The wake request that the bind told of
    wake: str = ""
    # To a bind
    version: str = ""
    # Of the spec whose environment and processes the runtime holds; empty when it was bound before.
    spec_hash: str = ""
    walls: Walls | None = None
    # Nothing can be written to the workspace.
    unwritable: bool = False
    # To a bind, and to the question after the setup
    setup: SetupResult | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The API server did not take one of the sandbox's objects, for a reason that trying at once does not
    change.
    """

    sandbox_uid: str
    generation: int
    reason: Reason
    message: str
    retry_at: datetime
    # How often in a row, for this reason.
    tries: int = 1
