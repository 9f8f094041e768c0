"""What the runtime consists of: the parts that surfaces share, and the surfaces that clients call."""

from itertools import chain

from sandpod_runtime import budget
from sandpod_runtime.activity import Activity
from sandpod_runtime.disk import Disk
from sandpod_runtime.environment import Environment
from sandpod_runtime.identity import Identity
from sandpod_runtime.options import Options
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.routing import Routes
from sandpod_runtime.state import StateDirectory
from sandpod_runtime.surfaces.basics import Basics
from sandpod_runtime.surfaces.exec import Exec
from sandpod_runtime.surfaces.lifecycle import Lifecycle
from sandpod_runtime.surfaces.watch import Watching
from sandpod_runtime.wire import Bodies


class Parts:
    """One of each. Made inside the event loop, which some of them use at once."""

    def __init__(self, options: Options, *, image: dict[str, str], open_files: int | None) -> None:
        self.options = options
        self.memory = budget.for_this_machine()
        self.bodies = Bodies(self.memory)
        self.disk = Disk()
        self.state = StateDirectory(options.state)
        self.activity = Activity()
        self.environment = Environment(image=image, workspace=options.workspace)
        self.identity = Identity(bind_sha256=options.bind_sha256, insecure=options.insecure)
        self.commands = Commands(open_files=open_files)


def routes(parts: Parts) -> Routes:
    surfaces = (
        Basics(environment=parts.environment),
        Lifecycle(
            identity=parts.identity,
            environment=parts.environment,
            commands=parts.commands,
            bodies=parts.bodies,
        ),
        Exec(
            commands=parts.commands,
            environment=parts.environment,
            bodies=parts.bodies,
            memory=parts.memory,
        ),
        Watching(disk=parts.disk, bodies=parts.bodies, workspace=parts.options.workspace),
    )
    return dict(chain.from_iterable(surface.routes().items() for surface in surfaces))
