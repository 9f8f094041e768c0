"""The bind, the settings of sleep, leases, and what is told about all of it."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.activity import LONGEST_LEASE
from sandpod_runtime.lifecycle.idleness import AwakeReason
from sandpod_runtime.lifecycle.life import Phase
from sandpod_runtime.models.common import Reply
from sandpod_runtime.models.processes import DeclaredProcess

SleepAfter = Annotated[
    Annotated[float, Meta(ge=0)] | None,
    Meta(description="seconds without activity after which it sleeps; null and 0: never by itself"),
]
MOST_DECLARED = 64
MOST_STEPS = 32
LONGEST_STEP = 8192

SetupState = Literal["none", "running", "succeeded", "failed", "skipped"]


class SandboxIdentity(msgspec.Struct, rename="camel", kw_only=True):
    namespace: str
    name: str
    uid: str


class PodIdentity(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    uid: str


class LifecycleSettings(msgspec.Struct, rename="camel", kw_only=True):
    sleep_after_seconds: SleepAfter = None
    keep_alive: Annotated[bool, Meta(description="never sleep by itself, whatever the other says")] = False


class BindRequest(msgspec.Struct, rename="camel", kw_only=True):
    sandbox: SandboxIdentity
    pod: PodIdentity
    credential: Annotated[str, Meta(min_length=16, max_length=256)]
    env: dict[str, str] = {}
    lifecycle: LifecycleSettings = msgspec.field(default_factory=LifecycleSettings)
    expect_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=LONGEST_LEASE,
            description="stay awake for so long, or until the first request, for somebody who is on the way",
        ),
    ] = 0
    processes: Annotated[
        list[DeclaredProcess],
        Meta(max_length=MOST_DECLARED, description="started now, and again as `restart` says"),
    ] = []
    setup: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=LONGEST_STEP)]],
        Meta(
            max_length=MOST_STEPS,
            description="commands that make the workspace ready, run in this order; then the processes start",
        ),
    ] = []


class IsolationShown(msgspec.Struct, rename="camel", kw_only=True):
    mode: Annotated[
        Literal["standard", "strict"],
        Meta(description="what the runtime was asked for; strict: commands have a world of their own"),
    ]
    complete: Annotated[bool, Meta(description="whether all of that is there")]
    reason: Annotated[str | UnsetType, Meta(description="why it is not")] = UNSET


class DiskShown(msgspec.Struct, rename="camel", kw_only=True):
    path: str
    total: Annotated[int, Meta(description="bytes")]
    free: Annotated[int, Meta(description="bytes that the sandbox's user may still write")]
    full: Annotated[bool, Meta(description="then GET /readyz answers 507")]
    writable: Annotated[bool, Meta(description="whether the sandbox's user can make files in it")]


class BindReply(Reply):
    runtime_version: str
    isolation: IsolationShown
    disk: Annotated[
        DiskShown | UnsetType, Meta(description="the file system of a workspace that outlives a sleep")
    ] = UNSET


class LifecycleRequest(msgspec.Struct, rename="camel", kw_only=True):
    """A field that is absent stays as it is."""

    sleep_after_seconds: SleepAfter | UnsetType = UNSET
    keep_alive: bool | UnsetType = UNSET


class LeaseRequest(msgspec.Struct, rename="camel", kw_only=True):
    seconds: Annotated[
        float, Meta(ge=0, le=LONGEST_LEASE, description="from now on; 0 gives the lease back")
    ] = 60
    holder: Annotated[str, Meta(min_length=1, max_length=128)] = "default"


class ProveQuery(msgspec.Struct, rename="camel", kw_only=True):
    nonce: Annotated[str, Meta(pattern="^[0-9A-Za-z_-]{16,64}$", description="another one for each question")]


class ProveReply(Reply):
    proof: Annotated[
        str, Meta(description="HMAC-SHA-256 of `sandpod-proof:` and the nonce by the credential, in hex")
    ]


class SleepRequest(msgspec.Struct, rename="camel", kw_only=True):
    reason: Annotated[
        str, Meta(max_length=256, description="for the termination message, which others may read")
    ] = ""


class Lease(msgspec.Struct, rename="camel", kw_only=True):
    holder: str
    expires_at: str


class ActivityShown(msgspec.Struct, rename="camel", kw_only=True):
    in_flight: Annotated[int, Meta(description="requests and streams that count as work")]
    last_active_at: str
    leases: list[Lease]
    cpu_cores: Annotated[
        float | UnsetType,
        Meta(description="what the sandbox's processes use; measured only while nothing else goes on"),
    ] = UNSET


class SetupShown(msgspec.Struct, rename="camel", kw_only=True):
    """`skipped`: it has succeeded in this workspace before. `running` in a termination message: it was cut
    off. What failed or was cut off is run again at the next start.
    """

    state: SetupState
    step: Annotated[int, Meta(description="the one that runs, failed or was the last; they count from 1")]
    steps: int
    command: Annotated[str | UnsetType, Meta(description="that of the step that runs or failed")] = UNSET
    exit_code: int | UnsetType = UNSET
    output: Annotated[
        str | UnsetType, Meta(description="the end of what it has written; all is in /api/setup/log")
    ] = UNSET
    started_at: str | UnsetType = UNSET
    finished_at: str | UnsetType = UNSET


class SetupLogQuery(msgspec.Struct, rename="camel", kw_only=True):
    follow: Annotated[bool, Meta(description="send on what is written until the setup has ended")] = False


class LifecycleReply(Reply):
    bound: bool
    phase: Phase
    runtime_version: str
    started_at: str
    running_commands: int
    activity: ActivityShown
    sleep_after_seconds: float | None
    keep_alive: bool
    awake_because: Annotated[
        list[AwakeReason], Meta(description="all that keeps it from sleeping this moment")
    ]
    setup: SetupShown
    isolation: IsolationShown
    disk: Annotated[
        DiskShown | UnsetType, Meta(description="the file system of a workspace that outlives a sleep")
    ] = UNSET
    seconds_left: Annotated[
        float | UnsetType, Meta(description="until it sleeps if nothing more happens; absent: it does not")
    ] = UNSET
    sleeps_at: str | UnsetType = UNSET
    bound_at: str | UnsetType = UNSET
    sandbox: SandboxIdentity | UnsetType = UNSET
    pod: PodIdentity | UnsetType = UNSET
