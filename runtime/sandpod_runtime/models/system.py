"""The system: what it is, and how much of it is used."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sandpod_runtime.models.common import Event, Reply


class SystemQuery(msgspec.Struct, rename="camel", kw_only=True):
    versions: Annotated[
        bool, Meta(description="Ask each tool for its version, which the first time takes seconds.")
    ] = True


class OperatingSystem(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    name: str
    version: str | UnsetType = UNSET


class User(msgspec.Struct, rename="camel", kw_only=True):
    uid: int
    gid: int
    name: str


class Cpus(msgspec.Struct, rename="camel", kw_only=True):
    count: Annotated[int, Meta(description="Those of the machine that may be used.")]
    limit: Annotated[float, Meta(description="How many may be busy at once, by the container's limit.")]


class DiskSpace(msgspec.Struct, rename="camel", kw_only=True):
    """Bytes of the file system that holds `path`. A limit of ephemeral storage does not show in it."""

    path: str
    total: int
    used: int
    available: int


class Memory(msgspec.Struct, rename="camel", kw_only=True):
    """`used` leaves out what the kernel would drop at once to make room."""

    used: int
    limit: int
    cache: int


class Tool(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    path: str
    version: str | UnsetType = UNSET


class SystemReply(Reply):
    os: OperatingSystem
    kernel: str
    architecture: str
    hostname: str
    user: User
    uptime: Annotated[float, Meta(description="Seconds since the runtime started.")]
    cpu: Cpus
    memory: Memory
    disks: list[DiskSpace]
    cgroup_version: Annotated[int, Meta(description="0 where there are no control groups.")]
    whole_machine: Annotated[bool, Meta(description="Numbers are the machine's: there is no container.")]
    tools: list[Tool]


class CpuUse(msgspec.Struct, rename="camel", kw_only=True):
    used: Annotated[float, Meta(description="CPUs that were busy.")]
    limit: float
    percent: Annotated[float, Meta(description="Of the limit.")]
    throttled_seconds: Annotated[float, Meta(description="How long the limit has held it back.")] | (
        UnsetType
    ) = UNSET


class Tasks(msgspec.Struct, rename="camel", kw_only=True):
    """`tasks` are processes and their threads, which is what the limit counts."""

    processes: int
    tasks: int | UnsetType = UNSET
    limit: int | UnsetType = UNSET


class Stats(msgspec.Struct, rename="camel", kw_only=True):
    cpu: CpuUse
    memory: Memory
    disks: list[DiskSpace]
    processes: Tasks
    load: Annotated[list[float], Meta(description="Of the machine, over 1, 5 and 15 minutes.")]
    whole_machine: bool


class StatsReply(Reply):
    stats: Stats


class StatsQuery(msgspec.Struct, rename="camel", kw_only=True):
    interval_ms: Annotated[float, Meta(ge=200, le=15_000)] = 1000


class StatsEvent(Event, tag="stats"):
    stats: Stats
