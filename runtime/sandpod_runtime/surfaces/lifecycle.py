"""The bind, which tells a started runtime whom it is for; how long it stays awake; and its sleep."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from aiohttp.web_response import StreamResponse
from msgspec import UNSET, UnsetType

from sandpod_runtime import __version__
from sandpod_runtime.activity import Activity
from sandpod_runtime.clock import timestamp
from sandpod_runtime.environment import Environment, checked_variable
from sandpod_runtime.gate import BIND, LIFECYCLE, PROVE
from sandpod_runtime.identity import Identity
from sandpod_runtime.lifecycle.idleness import Idleness, Settings
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.lifecycle.room import Room
from sandpod_runtime.lifecycle.setup import Setup
from sandpod_runtime.models.lifecycle import (
    ActivityShown,
    BindReply,
    BindRequest,
    DiskShown,
    IsolationShown,
    Lease,
    LeaseRequest,
    LifecycleReply,
    LifecycleRequest,
    ProveQuery,
    ProveReply,
    SleepRequest,
)
from sandpod_runtime.models.processes import DeclaredProcess
from sandpod_runtime.paths import shown
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.routing import Endpoint, Routes, queried
from sandpod_runtime.wire import Bodies, Request, reply

if TYPE_CHECKING:
    from sandpod_runtime.strict.isolation import Isolation

TOKEN_HEADER = "X-Sandpod-Bind-Token"  # noqa: S105 (the header's name)

logger = logging.getLogger(__name__)
_bind_decoder = msgspec.json.Decoder(BindRequest)
_settings_decoder = msgspec.json.Decoder(LifecycleRequest)
_lease_decoder = msgspec.json.Decoder(LeaseRequest)
_sleep_decoder = msgspec.json.Decoder(SleepRequest)

T = TypeVar("T")


class Begin(Protocol):
    async def __call__(self, *, steps: list[str], declared: list[DeclaredProcess]) -> None: ...


class Lifecycle:
    def __init__(
        self,
        *,
        identity: Identity,
        environment: Environment,
        commands: Commands,
        bodies: Bodies,
        activity: Activity,
        idleness: Idleness,
        life: Life,
        setup: Setup,
        room: Room,
        isolation: "Isolation | None",
        begin: Begin,
    ) -> None:
        self._identity = identity
        self._environment = environment
        self._commands = commands
        self._bodies = bodies
        self._activity = activity
        self._idleness = idleness
        self._life = life
        self._setup = setup
        self._room = room
        self._isolation = _isolation_shown(isolation)
        self._begin = begin

    def routes(self) -> Routes:
        return {
            BIND: Endpoint(
                handler=self._bind,
                tag="lifecycle",
                summary="The operator tells the runtime whom it is for; once.",
                body=BindRequest,
                reply=BindReply,
                errors=("UNAUTHENTICATED", "ALREADY_BOUND"),
            ),
            PROVE: Endpoint(
                handler=self._prove,
                tag="lifecycle",
                summary="That this runtime was given the credential, before anybody sends it here.",
                query=ProveQuery,
                reply=ProveReply,
                errors=("NOT_BOUND",),
                is_activity=False,
            ),
            LIFECYCLE: Endpoint(
                handler=self._show,
                tag="lifecycle",
                summary="Whom the runtime is for, what keeps it awake, and when it will sleep.",
                reply=LifecycleReply,
                is_activity=False,
            ),
            ("POST", "/api/lifecycle"): Endpoint(
                handler=self._change,
                tag="lifecycle",
                summary="Change when it sleeps.",
                body=LifecycleRequest,
                reply=LifecycleReply,
            ),
            ("POST", "/api/lifecycle/lease"): Endpoint(
                handler=self._lease,
                tag="lifecycle",
                summary="Keep it awake for a while, for activity that it cannot see itself.",
                body=LeaseRequest,
                reply=LifecycleReply,
                errors=("RESOURCE_BUSY",),
                is_activity=False,
            ),
            ("POST", "/api/lifecycle/sleep"): Endpoint(
                handler=self._sleep,
                tag="lifecycle",
                summary="Sleep now: save the sessions, end what runs, and exit.",
                body=SleepRequest,
                reply=LifecycleReply,
                is_activity=False,
            ),
        }

    async def _bind(self, request: Request) -> StreamResponse:
        self._identity.check_token(request.headers.get(TOKEN_HEADER, ""))
        wanted = await self._bodies.read(request, _bind_decoder)
        for name, value in wanted.env.items():
            checked_variable(name, value, field=f"env.{name}")
        self._identity.bind(wanted)
        self._environment.bind(wanted.env)
        self._idleness.settings = Settings(
            sleep_after=wanted.lifecycle.sleep_after_seconds, keep_alive=wanted.lifecycle.keep_alive
        )
        self._activity.expect(wanted.expect_seconds)
        logger.info(
            "bound",
            extra={
                "sandbox": f"{wanted.sandbox.namespace}/{wanted.sandbox.name}",
                "sandboxUid": wanted.sandbox.uid,
                "pod": wanted.pod.name,
            },
        )
        # An operator that loses its patience must not leave a runtime that has half begun.
        begin = self._begin(steps=wanted.setup, declared=wanted.processes)
        await asyncio.shield(asyncio.ensure_future(begin))
        disk = await self._disk_shown()
        return reply(BindReply(runtime_version=__version__, isolation=self._isolation, disk=disk))

    async def _prove(self, request: Request) -> StreamResponse:
        query: ProveQuery = queried(request, ProveQuery)
        return reply(ProveReply(proof=self._identity.proof(query.nonce)))

    async def _show(self, _: Request) -> StreamResponse:
        about = self._shown()
        about.disk = await self._disk_shown()
        return reply(about)

    async def _disk_shown(self) -> DiskShown | UnsetType:
        found = await self._room.look()
        if found is None:
            return UNSET
        return DiskShown(
            path=shown(found.path),
            total=found.total,
            free=found.free,
            full=found.full,
            writable=found.writable,
        )

    async def _change(self, request: Request) -> StreamResponse:
        wanted = await self._bodies.read(request, _settings_decoder)
        self._life.refuse_when_over()
        now = self._idleness.settings
        self._idleness.settings = Settings(
            sleep_after=_chosen(wanted.sleep_after_seconds, now.sleep_after),
            keep_alive=_chosen(wanted.keep_alive, now.keep_alive),
        )
        return reply(self._shown())

    async def _lease(self, request: Request) -> StreamResponse:
        wanted = await self._bodies.read(request, _lease_decoder)
        # It was awake when the request was admitted. A lease of one that sleeps would be a promise to lose.
        self._life.refuse_when_over()
        self._activity.lease(wanted.holder, wanted.seconds)
        return reply(self._shown())

    async def _sleep(self, request: Request) -> StreamResponse:
        wanted = await self._bodies.read(request, _sleep_decoder)
        self._life.end("requested", detail=wanted.reason)
        return reply(self._shown())

    def _shown(self) -> LifecycleReply:
        activity, settings = self._activity, self._idleness.settings
        # Times on the wire are those of the wall; what is decided goes by a clock that nobody sets.
        offset = time.time() - activity.now()
        left = None if self._life.draining else self._idleness.left()
        about = LifecycleReply(
            bound=self._identity.bound is not None,
            phase=self._life.phase,
            runtime_version=__version__,
            started_at=timestamp(self._identity.started_at),
            running_commands=len(self._commands),
            activity=ActivityShown(
                in_flight=activity.in_flight,
                last_active_at=timestamp(activity.last_active + offset),
                leases=[
                    Lease(holder=holder, expires_at=timestamp(until + offset))
                    for holder, until in activity.leases.items()
                ],
            ),
            sleep_after_seconds=settings.sleep_after,
            keep_alive=settings.keep_alive,
            isolation=self._isolation,
            setup=self._setup.shown(),
            awake_because=[] if self._life.draining else self._idleness.awake_because(),
        )
        if activity.cores is not None:
            about.activity.cpu_cores = round(activity.cores, 3)
        if left is not None:
            about.seconds_left = round(left, 3)
            about.sleeps_at = timestamp(activity.now() + left + offset)
        if (bound := self._identity.bound) is not None:
            about.bound_at = timestamp(bound.at)
            about.sandbox = bound.request.sandbox
            about.pod = bound.request.pod
        return about


def _isolation_shown(isolation: "Isolation | None") -> IsolationShown:
    if isolation is None:
        return IsolationShown(mode="standard", complete=True)
    complete = isolation.world is not None
    return IsolationShown(mode="strict", complete=complete, reason=isolation.reason or UNSET)


def _chosen(wanted: T | UnsetType, now: T) -> T:
    return now if isinstance(wanted, UnsetType) else wanted
