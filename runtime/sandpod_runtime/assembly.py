"""What the runtime consists of: the parts that surfaces share, and the surfaces that clients call."""

import time
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import UNSET

from sandpod_runtime import budget
from sandpod_runtime.activity import Activity
from sandpod_runtime.clock import timestamp
from sandpod_runtime.disk import Disk
from sandpod_runtime.environment import Environment
from sandpod_runtime.environment_store import EnvironmentStore
from sandpod_runtime.files.places import Places
from sandpod_runtime.files.uploads import Uploads
from sandpod_runtime.git.clone import Cloner
from sandpod_runtime.git.program import Git
from sandpod_runtime.git.requests import Surroundings
from sandpod_runtime.identity import Identity
from sandpod_runtime.lifecycle.beginning import Beginning
from sandpod_runtime.lifecycle.ending import Ending
from sandpod_runtime.lifecycle.idleness import Idleness, Settings
from sandpod_runtime.lifecycle.last_words import LastWords, SessionLeft
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.lifecycle.room import Room
from sandpod_runtime.lifecycle.setup import Setup
from sandpod_runtime.lifecycle.sleeper import Sleeper
from sandpod_runtime.metrics import Requests
from sandpod_runtime.options import Options
from sandpod_runtime.paths import shown
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.declared import DeclaredProcesses
from sandpod_runtime.process.records import Processes
from sandpod_runtime.routing import Routes
from sandpod_runtime.session.sessions import Sessions
from sandpod_runtime.state import StateDirectory
from sandpod_runtime.surfaces.archives import Archives
from sandpod_runtime.surfaces.backup import Backup
from sandpod_runtime.surfaces.basics import Basics
from sandpod_runtime.surfaces.environment import EnvironmentSurface
from sandpod_runtime.surfaces.exec import Exec
from sandpod_runtime.surfaces.files_list import FileListing
from sandpod_runtime.surfaces.files_read import FileReading
from sandpod_runtime.surfaces.files_tree import FileTree
from sandpod_runtime.surfaces.files_write import FileWriting
from sandpod_runtime.surfaces.git import GitCheckout
from sandpod_runtime.surfaces.git_remotes import GitRemotes
from sandpod_runtime.surfaces.git_work import GitWork
from sandpod_runtime.surfaces.lifecycle import Lifecycle
from sandpod_runtime.surfaces.metrics import MetricsSurface
from sandpod_runtime.surfaces.ports import Ports
from sandpod_runtime.surfaces.processes import ProcessesSurface
from sandpod_runtime.surfaces.processes_logs import ProcessLogs
from sandpod_runtime.surfaces.processes_start import Starter
from sandpod_runtime.surfaces.processes_wait import ProcessWaits
from sandpod_runtime.surfaces.pty import PtySurface
from sandpod_runtime.surfaces.readiness import Readiness
from sandpod_runtime.surfaces.reference import Reference
from sandpod_runtime.surfaces.search import Search
from sandpod_runtime.surfaces.sessions import SessionsSurface
from sandpod_runtime.surfaces.setup import SetupSurface
from sandpod_runtime.surfaces.system import System
from sandpod_runtime.surfaces.terminals import TerminalSurface
from sandpod_runtime.surfaces.transfers import Transfers
from sandpod_runtime.surfaces.watch import Watching
from sandpod_runtime.system.cgroup import Cgroup
from sandpod_runtime.system.cpu import user_cpu_seconds
from sandpod_runtime.system.stats import Meter
from sandpod_runtime.system.tools import Toolbox
from sandpod_runtime.terminal.terminals import Terminals
from sandpod_runtime.watch.watching import Watches
from sandpod_runtime.wire import Bodies

if TYPE_CHECKING:
    from sandpod_runtime.backup.backups import Backups
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
        self.options, self.isolation = options, isolation
        world = isolation.world if isolation else None
        self.memory = budget.for_this_machine()
        self.life = Life()
        self.bodies = Bodies(self.memory, self.life)
        self.disk = Disk()
        # Where a path of the user's leads where it leads for his commands.
        self.user_disk = self.disk if world is None else Disk(world.enter)
        self.state = StateDirectory(options.state)
        self.room = Room(disk=self.disk, path=options.workspace if self.state.persistent else None)
        self.activity = Activity()
        self.idleness = Idleness(self.activity, Settings(sleep_after=options.sleep_after))
        self.requests = Requests()
        self.environment = Environment(image=image, workspace=options.workspace)
        self.environment_store = EnvironmentStore(
            environment=self.environment, state=self.state, disk=self.disk
        )
        self.identity = Identity(bind_sha256=options.bind_sha256, insecure=options.insecure)
        self.commands = Commands(open_files=open_files, world=world)
        self.watches = Watches(disk=self.user_disk, workspace=options.workspace, apart=self.state.chosen)
        self.sessions = Sessions(
            commands=self.commands,
            environment=self.environment,
            state=self.state,
            disk=self.disk,
            workspace=options.workspace,
        )
        self.uploads = Uploads(disk=self.user_disk)
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
        self.terminals = Terminals(
            commands=self.commands, disk=self.user_disk, memory=self.memory, activity=self.activity
        )


def routes(parts: Parts) -> Routes:
    starter = Starter(
        commands=parts.commands,
        environment=parts.environment,
        memory=parts.memory,
        processes=parts.processes,
        sessions=parts.sessions,
    )
    places = Places(parts.sessions.directory)
    git = Git(commands=parts.commands)
    surroundings = Surroundings(
        environment=parts.environment,
        disk=parts.user_disk,
        directory=parts.sessions.directory,
        exported=lambda session_id: known.exported if (known := parts.sessions.known(session_id)) else None,
    )
    surfaces = (
        Basics(environment=parts.environment),
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
            running=running(parts),
        ),
        EnvironmentSurface(environment=parts.environment, store=parts.environment_store, bodies=parts.bodies),
        SessionsSurface(sessions=parts.sessions, bodies=parts.bodies),
        Exec(starter=starter, sessions=parts.sessions, bodies=parts.bodies, memory=parts.memory),
        ProcessesSurface(
            starter=starter, processes=parts.processes, bodies=parts.bodies, memory=parts.memory
        ),
        ProcessLogs(processes=parts.processes, memory=parts.memory),
        ProcessWaits(processes=parts.processes, bodies=parts.bodies),
        FileReading(places=places, disk=parts.user_disk, bodies=parts.bodies),
        FileWriting(places=places, disk=parts.user_disk, bodies=parts.bodies),
        FileListing(places=places, state=parts.state, disk=parts.user_disk, bodies=parts.bodies),
        FileTree(places=places, disk=parts.user_disk, bodies=parts.bodies),
        Transfers(places=places, disk=parts.user_disk, bodies=parts.bodies, uploads=parts.uploads),
        Search(
            commands=parts.commands,
            disk=parts.disk,
            bodies=parts.bodies,
            directory=parts.sessions.directory,
        ),
        Backup(lambda: backups(parts)),
        Archives(disk=parts.user_disk, state=parts.state, directory=parts.sessions.directory),
        TerminalSurface(terminals=parts.terminals, environment=parts.environment, bodies=parts.bodies),
        PtySurface(terminals=parts.terminals, sessions=parts.sessions, environment=parts.environment),
        GitCheckout(
            git=git,
            cloner=Cloner(git=git, disk=parts.user_disk),
            surroundings=surroundings,
            bodies=parts.bodies,
        ),
        GitWork(git=git, surroundings=surroundings, bodies=parts.bodies, memory=parts.memory),
        GitRemotes(git=git, surroundings=surroundings, bodies=parts.bodies),
        System(
            environment=parts.environment,
            meter=Meter(cgroup=Cgroup(), places=(parts.options.workspace, "/")),
            toolbox=Toolbox(commands=parts.commands, disk=parts.disk),
            disk=parts.disk,
        ),
        Ports(processes=parts.processes, disk=parts.user_disk, bodies=parts.bodies),
        Watching(watches=parts.watches, bodies=parts.bodies, workspace=parts.options.workspace),
        Reference(disk=parts.disk, everything=lambda: found),
    )
    found = dict(chain.from_iterable(surface.routes().items() for surface in surfaces))
    return found


def backups(parts: Parts) -> "Backups":
    from sandpod_runtime.backup.backups import Backups

    return Backups(
        commands=parts.commands,
        environment=parts.environment,
        state=parts.state,
        disk=parts.disk,
        bodies=parts.bodies,
        workspace=parts.options.workspace,
    )


def beginning(parts: Parts) -> Beginning:
    saved = {"environment": parts.environment_store.restore, "sessions": parts.sessions.restore_all}
    return Beginning(
        life=parts.life,
        restore=saved if parts.state.persistent else {},
        setup=parts.setup,
        start=parts.declared.start,
    )


def running(parts: Parts) -> dict[str, Callable[[], int]]:
    """How many there are of each kind of thing that runs."""
    return {
        "commands": lambda: len(parts.commands),
        "processes": lambda: len(parts.processes.living()),
        "sessions": lambda: len(parts.sessions),
        "terminals": lambda: len(parts.terminals.all()),
    }


def sleeper(parts: Parts) -> Sleeper:
    return Sleeper(
        activity=parts.activity,
        idleness=parts.idleness,
        cpu_seconds=lambda: parts.disk.run(user_cpu_seconds),
    )


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
            running={kind: count() for kind, count in running(parts).items()},
            sessions=[
                SessionLeft(id=session_id, cwd=shown(parts.sessions.directory(session_id)))
                for session_id in parts.sessions.ids()
            ],
        )

    async def close_sessions() -> None:
        parts.sessions.close()

    return Ending(
        save={"sessions": parts.sessions.save_all} if saves else {},
        stop={
            "setup": parts.setup.stop,
            "declared": parts.declared.stop,
            "sessions": close_sessions,
            "terminals": parts.terminals.shut_down,
            "uploads": parts.uploads.shut_down,
            "watches": parts.watches.stop,
        },
        kill={"commands": parts.commands.end_all},
        last_words=last_words,
        termination_log=parts.options.termination_log,
        disk=parts.disk,
    )
