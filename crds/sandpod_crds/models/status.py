"""What Sandpod says about a sandbox. All of it can be found out again but the deadlines and counters, which
are kept here because nowhere else would they survive a restart of the operator.
"""

from datetime import datetime
from typing import Annotated, Literal

from ..markers import Bounds, MapBy, Model
from ..names import Phase
from .meta import Conditions


class PortStatus(Model):
    port: int
    """The port in the sandbox."""
    name: str | None = None
    """Its name in the spec."""
    url: str | None = None
    """The preview URL. With access: Token whoever has it can open the port, so treat it as a secret."""
    access: Literal["Token", "Private"] = "Token"
    """Who may open it, as in the spec."""
    token_version: int = 1
    """The version of the token in the URL."""
    inherited: bool = False
    """Whether the sandbox's template has this port too."""


class SessionStatus(Model):
    id: str
    """Name of the session."""
    cwd: str | None = None
    """Its working directory."""


class SetupStatus(Model):
    result: Literal["Running", "Succeeded", "Failed"]
    """Running, Succeeded or Failed. What failed is tried again at the next start."""
    message: Annotated[str, Bounds(longest=4096)] = ""
    """The step that runs or failed, and the end of its output."""
    finished_at: datetime | None = None
    """When it ended."""


class SandboxStatus(Model):
    phase: Phase | None = None
    """Pending (waits for something, see the conditions), Starting, Running, Draining (going to sleep), Asleep
    (the next request wakes it) or Failed (tried again ever more slowly, see the condition Ready)."""
    conditions: Conditions = ()
    """Ready: the sandbox answers. WorkspaceReady: its files are there and safe. PreviewReady: its URLs work.
    Isolated: its walls stand. SpecHonored: every field that is set has an effect."""
    pod_name: str | None = None
    """The sandbox's pod, in the same namespace. Empty while asleep."""
    pod_uid: str | None = None
    """UID of that pod."""
    pod_ip: str | None = None
    """Address of that pod."""
    image: str | None = None
    """The image that runs."""
    runtime_version: str | None = None
    """Version of Sandpod's runtime in the pod."""
    sleep_after: str | None = None
    """After how long without work it sleeps, such as 10m; never with keepAlive. What the runtime goes by."""
    workspace_claim: str | None = None
    """The PersistentVolumeClaim that holds its files."""
    pool: str | None = None
    """The SandboxPool that the present pod was taken from, warm."""
    isolation: Annotated[str, Bounds(longest=1024)] | None = None
    """With isolation: Strict, what the runtime has reached of it: Complete, or what is missing and why."""
    setup: SetupStatus | None = None
    """How the commands of spec.setup went, in the present pod."""
    ports: Annotated[tuple[PortStatus, ...], MapBy("port"), Bounds(longest=32)] = ()
    """The exposed ports and their preview URLs."""
    sessions: Annotated[tuple[SessionStatus, ...], MapBy("id"), Bounds(longest=256)] = ()
    """The sessions that were open when it last fell asleep, and that a wake brings back."""
    last_active_at: datetime | None = None
    """When work was last seen, as of the last time it went to sleep."""
    asleep_since: datetime | None = None
    """Since when it sleeps. Empty while awake."""
    sleep_reason: str | None = None
    """Why it sleeps: Idle, Paused, Requested, or Node (its node was drained while nobody worked). Empty while
    awake."""
    wake_observed: Annotated[str, Bounds(longest=256)] | None = None
    """The last wake request that has been fulfilled: the value of the annotation
    sandpod.dev/wake-requested-at."""
    wakes: int | None = None
    """How often it was woken from sleep."""
    restarts: int | None = None
    """How often its pod was started again after a failure."""
    started_at: datetime | None = None
    """When the runtime of the present pod first answered."""
    start_failures: int | None = None
    """How many starts in a row have failed. Empty after one that worked."""
    next_start_at: datetime | None = None
    """After failures: when the next start is tried."""
    observed_generation: int | None = None
    """The metadata.generation that this status is about; when older than the object's, it is out of date."""
    spec_hash: str | None = None
    """Hash of the spec, template included, that the present pod was made from."""
