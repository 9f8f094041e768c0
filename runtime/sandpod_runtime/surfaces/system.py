"""The system that a sandbox is: what it consists of, and a stream of how much is used."""

import asyncio
import os
import time

from aiohttp.web_response import StreamResponse
from msgspec import UNSET

from sandpod_runtime.disk import Disk
from sandpod_runtime.environment import Environment, user_name
from sandpod_runtime.limits import Slots
from sandpod_runtime.models.system import (
    Cpus,
    CpuUse,
    DiskSpace,
    Memory,
    OperatingSystem,
    Stats,
    StatsEvent,
    StatsQuery,
    StatsReply,
    SystemQuery,
    SystemReply,
    Tasks,
    Tool,
    User,
)
from sandpod_runtime.paths import shown
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.sse import open_stream, struct_event
from sandpod_runtime.system import facts
from sandpod_runtime.system.stats import Meter, Sample, cpus_used
from sandpod_runtime.system.tools import Toolbox
from sandpod_runtime.wire import Request, reply

MOST_STREAMS = 16
# Between two looks, for a single answer.
_MOMENT = 0.25


class System:
    def __init__(
        self, *, environment: Environment, meter: Meter, toolbox: Toolbox, disk: Disk, begun: float
    ) -> None:
        """`begun` is when the runtime was, by the monotonic clock."""
        self._environment = environment
        self._meter = meter
        self._toolbox = toolbox
        self._disk = disk
        self._begun = begun
        self._slots = Slots("streams of statistics", MOST_STREAMS)

    def routes(self) -> Routes:
        return {
            ("GET", "/api/system"): Endpoint(
                handler=self._show,
                tag="system",
                summary="Operating system, hardware, limits, and the tools of the image.",
                query=SystemQuery,
                reply=SystemReply,
            ),
            ("GET", "/api/system/stats"): Endpoint(
                handler=self._stats,
                tag="system",
                summary="How much is used, over a quarter of a second.",
                reply=StatsReply,
                is_activity=False,
            ),
            ("GET", "/api/system/stats/stream"): Endpoint(
                handler=self._streamed,
                tag="system",
                summary="How much is used, again and again.",
                query=StatsQuery,
                events=(StatsEvent,),
                errors=("RESOURCE_BUSY",),
                is_activity=False,
            ),
        }

    async def _show(self, request: Request) -> StreamResponse:
        query: SystemQuery = queried(request, SystemQuery)
        tools = await self._toolbox.tools(self._environment.variables, versions=query.versions)
        found = await self._disk.run(self._about)
        found.tools = [
            Tool(name=tool.name, path=shown(tool.path), version=tool.version or UNSET) for tool in tools
        ]
        return reply(found)

    async def _stats(self, _: Request) -> StreamResponse:
        before = await self._disk.run(self._meter.sample)
        await asyncio.sleep(_MOMENT)
        after = await self._disk.run(self._meter.sample)
        return reply(StatsReply(stats=self._compared(before, after)))

    async def _streamed(self, request: Request) -> StreamResponse:
        query: StatsQuery = queried(request, StatsQuery)
        with self._slots.one():
            before = await self._disk.run(self._meter.sample)
            response = await open_stream(request)
            while True:
                await asyncio.sleep(query.interval_ms / 1000)
                after = await self._disk.run(self._meter.sample)
                await response.write(struct_event(StatsEvent(stats=self._compared(before, after))))
                before = after

    def _about(self) -> SystemReply:
        release = facts.os_release(facts.text("/etc/os-release") or facts.text("/usr/lib/os-release"))
        kernel = os.uname()
        sample = self._meter.sample()
        return SystemReply(
            os=OperatingSystem(
                id=release.get("ID", "linux"),
                name=release.get("PRETTY_NAME") or release.get("NAME", "Linux"),
                version=release.get("VERSION_ID") or UNSET,
            ),
            kernel=kernel.release,
            architecture=kernel.machine,
            hostname=kernel.nodename,
            user=User(uid=os.geteuid(), gid=os.getegid(), name=shown(user_name(os.geteuid()))),
            uptime=round(time.monotonic() - self._begun, 3),
            cpu=Cpus(count=len(os.sched_getaffinity(0)), limit=self._meter.cpus()),
            memory=_memory(sample),
            disks=_disks(sample),
            cgroup_version=self._meter.cgroup.version,
            whole_machine=self._meter.whole_machine,
            tools=[],
        )

    def _compared(self, before: Sample, after: Sample) -> Stats:
        used, limit = cpus_used(before, after), self._meter.cpus()
        throttled = after.throttled_seconds
        return Stats(
            cpu=CpuUse(
                used=round(used, 4),
                limit=limit,
                percent=round(100 * used / limit, 2) if limit else 0.0,
                throttled_seconds=UNSET if throttled is None else throttled,
            ),
            memory=_memory(after),
            disks=_disks(after),
            processes=Tasks(
                processes=after.processes,
                tasks=UNSET if after.tasks is None else after.tasks,
                limit=UNSET if after.tasks_limit is None else after.tasks_limit,
            ),
            load=list(after.load),
            whole_machine=self._meter.whole_machine,
        )


def _memory(sample: Sample) -> Memory:
    return Memory(used=sample.memory, limit=sample.memory_limit, cache=sample.cache)


def _disks(sample: Sample) -> list[DiskSpace]:
    return [
        DiskSpace(path=shown(path), total=disk.total, used=disk.used, available=disk.available)
        for path, disk in sample.disks.items()
    ]
