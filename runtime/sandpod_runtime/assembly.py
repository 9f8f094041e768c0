"""What the runtime consists of: the parts that surfaces share, and those surfaces that a start needs. The
others are in families.py.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET

from sandpod_runtime import budget, families
from sandpod_runtime.activity import Activity
from sandpod_runtime.clock import timestamp
from sandpod_runtime.disk import Disk
from sandpod_runtime.environment import Environment
from sandpod_runtime.environment_store import EnvironmentStore
from sandpod_runtime.identity import Identity
from sandpod_runtime.lifecycle.beginning import Beginning
from sandpod_runtime.lifecycle.ending import Ending
from sandpod_runtime.lifecycle.idleness import Idleness, Settings
from sandpod_runtime.lifecycle.last_words import LastWords, SessionLeft
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.lifecycle.room import Room
from sandpod_runtime.lifecycle.setup import Setup
from sandpod_runtime.lifecycle.sleeper import Sleeper
from sandpod_runtime.lifecycle.steps import Step
from sandpod_runtime.metrics import Requests
from sandpod_runtime.options import Options
from sandpod_runtime.paths import shown
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.declared import DeclaredProcesses
from sandpod_runtime.process.records import Processes
from sandpod_runtime.routing import Router, joined
from sandpod_runtime.session.sessions import Sessions
from sandpod_runtime.state import StateDirectory
from sandpod_runtime.surfaces.basics import Basics
from sandpod_runtime.surfaces.environment import EnvironmentSurface
from sandpod_runtime.surfaces.exec import Exec
from sandpod_runtime.surfaces.lifecycle import Lifecycle
from sandpod_runtime.surfaces.metrics import MetricsSurface
from sandpod_runtime.surfaces.processes_start import Starter
from sandpod_runtime.surfaces.readiness import Readiness
from sandpod_runtime.surfaces.reference import Reference
from sandpod_runtime.surfaces.sessions import SessionsSurface
from sandpod_runtime.surfaces.setup import SetupSurface
from sandpod_runtime.wire import Bodies

if TYPE_CHECKING:
    from sandpod_runtime.strict.isolation import Isolation


class Parts:
    """One of each. Made inside the event loop, which some of them use at once."""

    def __init__(
        self,
        options: Options,
        *,
        isolation: "Isolation | None" = None,
        image: dict[str, str],
        open_files: int | None,
    ) -> None:
        self.begun = time.monotonic()
        self.options, self.isolation = options, isolation
        world = isolation.world if isolation else None
        self.memory = budget.for_this_machine()
        self.life = Life()
        self.bodies = Bodies(self.memory, self.life)
        self.disk = Disk()
        # Where a path of the user's leads where it leads for his commands.
        self.user_disk = self.disk if world is None else Disk(world.enter)
        self.state = StateDirectory(options.state)
        self.room = Room(
            disk=self.disk,
            path=options.workspace if self.state.persistent else None,
            user=options.strict if world is not None else None,
        )
        self.activity = Activity()
        self.idleness = Idleness(self.activity, Settings(sleep_after=options.sleep_after))
        self.requests = Requests()
        self.environment = Environment(image=image, workspace=options.workspace)
        self.environment_store = EnvironmentStore(
            environment=self.environment, state=self.state, disk=self.disk
        )
        self.identity = Identity(bind_sha256=options.bind_sha256, insecure=options.insecure)
        self.commands = Commands(open_files=open_files, world=world)
        self.sessions = Sessions(
            commands=self.commands,
            environment=self.environment,
            state=self.state,
            disk=self.disk,
            workspace=options.workspace,
        )
        self.processes = Processes(memory=self.memory)
        self.declared = DeclaredProcesses(
            commands=self.commands, environment=self.environment, processes=self.processes
        )
        self.setup = Setup(
            commands=self.commands,
            environment=self.environment,
            state=self.state,
            disk=self.disk,
            memory=self.memory,
            activity=self.activity,
            life=self.life,
        )
        self.starter = Starter(
            commands=self.commands,
            environment=self.environment,
            memory=self.memory,
            processes=self.processes,
            sessions=self.sessions,
        )
        # Families that are made later add themselves to these two: how many there are of each kind of thing
        # that runs, and who has to stop when the runtime ends.
        self.running: dict[str, Callable[[], int]] = {
            "commands": lambda: len(self.commands),
            "processes": lambda: len(self.processes.living()),
            "sessions": lambda: len(self.sessions),
            "terminals": lambda: 0,
        }
        self.stop: dict[str, Step] = {
            "setup": self.setup.stop,
            "declared": self.declared.stop,
            "sessions": self.sessions.close,
        }


def router(parts: Parts) -> Router:
    surfaces = (
        Basics(environment=parts.environment, begun=parts.begun),
        Readiness(life=parts.life, room=parts.room),
        Lifecycle(
            identity=parts.identity,
            environment=parts.environment,
            commands=parts.commands,
            bodies=parts.bodies,
            activity=parts.activity,
            idleness=parts.idleness,
            life=parts.life,
            setup=parts.setup,
            room=parts.room,
            isolation=parts.isolation,
            begin=beginning(parts).run,
        ),
        SetupSurface(setup=parts.setup),
        MetricsSurface(
            requests=parts.requests,
            memory=parts.memory,
            idleness=parts.idleness,
            identity=parts.identity,
            running=parts.running,
        ),
        EnvironmentSurface(environment=parts.environment, store=parts.environment_store, bodies=parts.bodies),
        SessionsSurface(sessions=parts.sessions, bodies=parts.bodies),
        Exec(starter=parts.starter, sessions=parts.sessions, bodies=parts.bodies, memory=parts.memory),
        Reference(disk=parts.disk, everything=lambda: found.everything()),
    )
    found = Router(joined(surfaces), families.of(parts))
    return found


def beginning(parts: Parts) -> Beginning:
    saved = {"environment": parts.environment_store.restore, "sessions": parts.sessions.restore_all}
    return Beginning(
        life=parts.life,
        restore=saved if parts.state.persistent else {},
        setup=parts.setup,
        start=parts.declared.start,
    )


def sleeper(parts: Parts) -> Sleeper:
    async def cpu_seconds() -> float:
        from sandpod_runtime.system.cpu import user_cpu_seconds  # first needed seconds after the start

        return await parts.disk.run(user_cpu_seconds)

    return Sleeper(activity=parts.activity, idleness=parts.idleness, cpu_seconds=cpu_seconds)


def ending(parts: Parts) -> Ending:
    saves = parts.state.persistent and parts.life.restored

    def last_words(saved: bool) -> LastWords:
        offset = time.time() - parts.activity.now()
        return LastWords(
            reason=parts.life.reason or "terminated",
            detail=parts.life.detail or UNSET,
            last_active_at=timestamp(parts.activity.last_active + offset),
            ended_at=timestamp(),
            saved=saved and saves,
            setup=parts.setup.state,
            running={kind: count() for kind, count in parts.running.items()},
            sessions=[
                SessionLeft(id=session_id, cwd=shown(parts.sessions.directory(session_id)))
                for session_id in parts.sessions.ids()
            ],
        )

    return Ending(
        save={"sessions": parts.sessions.save_all} if saves else {},
        stop=parts.stop,
        kill={"commands": parts.commands.end_all},
        last_words=last_words,
        termination_log=parts.options.termination_log,
        disk=parts.disk,
    )
