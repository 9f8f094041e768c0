"""What is to be done for one sandbox, as data: at most one of each step. Made by decide, carried out by
execute in the order of the fields.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sandpod_crds.models import SandboxStatus

from .kinds import POD, POD_LABELS, POD_OWNER, Kind
from .objects import Json, section
from .observations import Errand
from .pool.claim import Order, Reading


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

    name: str
    uid: str
    # Without waiting for a node that may never answer.
    force: bool = False


class Verb(StrEnum):
    CREATE = "create"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True, kw_only=True, slots=True)
class Write:
    """One of the sandbox's objects beside pod and status."""

    verb: Verb
    kind: Kind
    name: str
    # Where; without one, beside the sandbox.
    namespace: str | None = None
    body: Json = field(default_factory=Json)
    # For a deletion: of this very object, and with a version only as long as nobody has changed it.
    uid: str | None = None
    version: str | None = None
    # For a creation: told when it was one, and not when the object turns out to be there.
    notice: Notice | None = None

    @property
    def matter(self) -> str:
        """What a refusal of it is about."""
        if (self.verb, self.kind) != (Verb.PATCH, POD):
            return self.kind.plural
        # Who may not have one thing may have the other.
        return POD_OWNER if "ownerReferences" in section(self.body, "metadata") else POD_LABELS


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """Say this to the runtime of this pod, until it answers."""

    errand: Errand
    pod_uid: str
    pod_name: str
    namespace: str
    ip: str
    sandbox_name: str
    sandbox_uid: str
    # Of the pod's bind token; without one the pod was made before runtimes could prove who they are.
    bind_nonce: str = ""
    # Handed back with the answer.
    subject: str = ""
    # With a bind and with ADJUST; None: never by itself.
    sleep_after: float | None = None
    # With a bind only
    spec_hash: str = ""
    # The wake request of whoever waits until we say that it is awake
    wake: str = ""
    # Values may be secrets.
    env: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    processes: tuple[Json, ...] = field(default=(), repr=False)
    setup: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    # What a pod needs to be there before it.
    writes: tuple[Write, ...] = ()
    # What a warm pod's environment refers to
    reading: Reading | None = None
    claim: Order | None = None
    # A new pod comes before the status that tells of it: its start is what a user waits for. Its own round
    # of decide writes the status.
    create_pod: Json | None = None
    # Why it is a new one, though the sandbox has a pool
    cold: str = ""
    # The status comes before the deletion that it accounts for: cut off in between, the failure is not
    # counted twice and its cause is not lost.
    status: SandboxStatus | None = None
    notices: tuple[Notice, ...] = ()
    remove_pod: Removal | None = None
    # None also ends an asking that is under way.
    ask: Ask | None = None
    look_again_at: datetime | None = None
