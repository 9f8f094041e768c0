"""What is to be done for one sandbox, as data: at most one of each step. Made by decide, carried out by
execute in the order of the fields.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sandpod_crds.models import SandboxStatus

from .objects import Json


class Tone(StrEnum):
    """The two types that Kubernetes has for events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """An event for whoever reads `kubectl describe sandbox`."""

    tone: Tone
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """Delete this very pod."""

    uid: str
    # Without waiting for a node that may never answer.
    force: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """Ask the runtime of this pod to be ours, until it answers."""

    pod_uid: str
    pod_name: str
    namespace: str
    ip: str
    sandbox_name: str
    sandbox_uid: str
    spec_hash: str
    # Values may be secrets.
    env: dict[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    # A new pod comes before the status that tells of it: its start is what a user waits for. Its own round
    # of decide writes the status.
    create_pod: Json | None = None
    # The status comes before the deletion that it accounts for: cut off in between, the failure is not
    # counted twice and its cause is not lost.
    status: SandboxStatus | None = None
    notices: tuple[Notice, ...] = ()
    remove_pod: Removal | None = None
    # None also ends an asking that is under way.
    ask: Ask | None = None
    look_again_at: datetime | None = None
