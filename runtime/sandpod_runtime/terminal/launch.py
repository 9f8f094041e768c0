"""What a new terminal starts: which shell, where, with which variables."""

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandpod_runtime.disk import fault_of
from sandpod_runtime.environment import Environ
from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.process import shell as shells
from sandpod_runtime.process.spawn import Program
from sandpod_runtime.terminal.pty import Size

if TYPE_CHECKING:
    from sandpod_runtime.terminal.terminal import Terminal

DEFAULT_SIZE = Size(cols=80, rows=24)
_TYPE = "xterm-256color"
_LONGEST_NAME = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    environ: Environ
    directory: str
    # Where to start when `directory` has gone; None when the caller chose it and wants to be told.
    otherwise: str | None
    shell: str | None
    size: Size
    on_made: "Callable[[Terminal], None] | None" = None


def program(launch: Launch) -> Program:
    """Looks at the file system. Raises Fault."""
    path, *arguments = _shell(launch.shell, search=launch.environ.get("PATH", ""))
    environ = {"SHELL": path} | launch.environ | {"TERM": _TYPE}
    return Program(path=path, arguments=arguments, environ=environ, directory=_directory(launch))


def _shell(wanted: str | None, *, search: str) -> list[str]:
    if not wanted:
        if found := shells.find(search=search):
            return found
        raise Fault("COMMAND_NOT_FOUND", "this image has no shell: bash, sh and busybox were not found")
    # A name that begins with a dash would make it a login shell.
    if "\0" in wanted or len(wanted) > _LONGEST_NAME or wanted.startswith("-"):
        raise invalid("shell", "give a program's name or its absolute path, without options")
    if "/" in wanted and not wanted.startswith("/"):
        raise invalid("shell", "a path of a shell is absolute")
    found = shutil.which(wanted, path=search)
    if found is None or not found.startswith("/"):
        raise invalid("shell", f"{wanted} is not a program here; give its name or path, without options")
    return [found, os.path.basename(found)]  # noqa: PTH119 (a name, not a place)


def _directory(launch: Launch) -> str:
    try:
        mode = os.stat(launch.directory).st_mode  # noqa: PTH116 (in a thread, and the path is the user's)
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(20, "Not a directory")
        if not os.access(launch.directory, os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        if launch.otherwise is None:
            raise fault_of(error, path=launch.directory, operation="terminal.create") from error
        return launch.otherwise
    return launch.directory
