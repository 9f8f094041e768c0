"""The surfaces that are imported and made when the first request comes for one of their paths.

A new one is a function here that imports and makes it, and a line in `of`.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from sandpod_runtime.routing import Family, Surface

if TYPE_CHECKING:
    from sandpod_runtime.assembly import Parts


def of(parts: "Parts") -> list[Family]:
    """In the order in which the reference tells of them."""
    return [
        Family("/api/process", make=partial(_processes, parts)),
        Family(
            "/api/read",
            "/api/write",
            "/api/list-files",
            "/api/exists",
            "/api/delete",
            "/api/rename",
            "/api/move",
            "/api/mkdir",
            "/api/files",
            make=partial(_files, parts),
        ),
        Family("/api/files/raw", "/api/files/uploads", make=partial(_transfers, parts)),
        Family("/api/files/find", "/api/files/grep", make=partial(_search, parts)),
        Family("/api/backup", make=partial(_backup, parts)),
        Family("/api/files/archive", make=partial(_archives, parts)),
        Family("/api/terminal", "/ws/terminal", "/ws/pty", make=partial(_terminals, parts)),
        Family("/api/git", make=partial(_git, parts)),
        Family("/api/system", make=partial(_system, parts)),
        Family("/api/ports", "/api/port-watch", make=partial(_ports, parts)),
        Family("/api/watch", make=partial(_watch, parts)),
    ]


def _processes(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.surfaces.processes import ProcessesSurface
    from sandpod_runtime.surfaces.processes_logs import ProcessLogs
    from sandpod_runtime.surfaces.processes_wait import ProcessWaits

    return (
        ProcessesSurface(
            starter=parts.starter, processes=parts.processes, bodies=parts.bodies, memory=parts.memory
        ),
        ProcessLogs(processes=parts.processes, memory=parts.memory),
        ProcessWaits(processes=parts.processes, bodies=parts.bodies),
    )


def _files(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.files.places import Places
    from sandpod_runtime.surfaces.files_list import FileListing
    from sandpod_runtime.surfaces.files_read import FileReading
    from sandpod_runtime.surfaces.files_tree import FileTree
    from sandpod_runtime.surfaces.files_write import FileWriting

    places = Places(parts.sessions.directory)
    return (
        FileReading(places=places, disk=parts.user_disk, bodies=parts.bodies),
        FileWriting(places=places, disk=parts.user_disk, bodies=parts.bodies),
        FileListing(places=places, state=parts.state, disk=parts.user_disk, bodies=parts.bodies),
        FileTree(places=places, disk=parts.user_disk, bodies=parts.bodies),
    )


def _transfers(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.files.places import Places
    from sandpod_runtime.files.uploads import Uploads
    from sandpod_runtime.surfaces.transfers import Transfers

    places = Places(parts.sessions.directory)
    uploads = Uploads(disk=parts.user_disk)
    parts.stop["uploads"] = uploads.shut_down
    return (Transfers(places=places, disk=parts.user_disk, bodies=parts.bodies, uploads=uploads),)


def _search(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.surfaces.search import Search

    return (
        Search(
            commands=parts.commands,
            disk=parts.disk,
            bodies=parts.bodies,
            directory=parts.sessions.directory,
        ),
    )


def _backup(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.backup.backups import Backups
    from sandpod_runtime.surfaces.backup import Backup

    backups = Backups(
        commands=parts.commands,
        environment=parts.environment,
        state=parts.state,
        disk=parts.disk,
        bodies=parts.bodies,
        workspace=parts.options.workspace,
    )
    return (Backup(backups),)


def _archives(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.surfaces.archives import Archives

    return (Archives(disk=parts.user_disk, state=parts.state, directory=parts.sessions.directory),)


def _terminals(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.surfaces.pty import PtySurface
    from sandpod_runtime.surfaces.terminals import TerminalSurface
    from sandpod_runtime.terminal.terminals import Terminals

    terminals = Terminals(
        commands=parts.commands, disk=parts.user_disk, memory=parts.memory, activity=parts.activity
    )
    parts.running["terminals"] = lambda: len(terminals.all())
    parts.stop["terminals"] = terminals.shut_down
    return (
        TerminalSurface(terminals=terminals, environment=parts.environment, bodies=parts.bodies),
        PtySurface(terminals=terminals, sessions=parts.sessions, environment=parts.environment),
    )


def _git(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.git.clone import Cloner
    from sandpod_runtime.git.program import Git
    from sandpod_runtime.git.requests import Surroundings
    from sandpod_runtime.surfaces.git import GitCheckout
    from sandpod_runtime.surfaces.git_remotes import GitRemotes
    from sandpod_runtime.surfaces.git_work import GitWork

    git = Git(commands=parts.commands)
    known = parts.sessions.known
    surroundings = Surroundings(
        environment=parts.environment,
        disk=parts.user_disk,
        directory=parts.sessions.directory,
        exported=lambda session_id: session.exported if (session := known(session_id)) else None,
    )
    return (
        GitCheckout(
            git=git,
            cloner=Cloner(git=git, disk=parts.user_disk),
            surroundings=surroundings,
            bodies=parts.bodies,
        ),
        GitWork(git=git, surroundings=surroundings, bodies=parts.bodies, memory=parts.memory),
        GitRemotes(git=git, surroundings=surroundings, bodies=parts.bodies),
    )


def _system(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.surfaces.system import System
    from sandpod_runtime.system.cgroup import Cgroup
    from sandpod_runtime.system.stats import Meter
    from sandpod_runtime.system.tools import Toolbox

    return (
        System(
            environment=parts.environment,
            meter=Meter(cgroup=Cgroup(), places=(parts.options.workspace, "/")),
            toolbox=Toolbox(commands=parts.commands, disk=parts.disk),
            disk=parts.disk,
            begun=parts.begun,
        ),
    )


def _ports(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.surfaces.ports import Ports

    return (Ports(processes=parts.processes, disk=parts.user_disk, bodies=parts.bodies),)


def _watch(parts: "Parts") -> Iterable[Surface]:
    from sandpod_runtime.surfaces.watch import Watching
    from sandpod_runtime.watch.watching import Watches

    watches = Watches(disk=parts.user_disk, workspace=parts.options.workspace, apart=parts.state.chosen)
    parts.stop["watches"] = watches.stop
    return (Watching(watches=watches, bodies=parts.bodies, workspace=parts.options.workspace),)
