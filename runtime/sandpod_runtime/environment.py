"""The environment of the user's commands: the image's own, then what the bind brought, then what the call
brings.

Nothing of the runtime's reaches them: no SANDPOD_ variable, no loader path, no locale that Python made up
for itself.
"""

import os
import re
import resource
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sandpod_runtime.errors import invalid

RESERVED = "SANDPOD_"
# The launcher renames the image's LD_* and GLIBC_TUNABLES to these, so that they do not act on the
# runtime's Python.
KEPT = "SANDPOD_KEEP_"
_KUBELET = ("KUBERNETES_SERVICE_", "KUBERNETES_PORT")
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_USERS = Path("/etc/passwd")
_USERS_READ = 1 << 20
_NOBODY_KNOWN = "sandbox"
# What Kubernetes accepts: printable ASCII without "=". A shell ignores names that it could not have made
# itself.
_NAME = re.compile(r"[ -<>-~]+")
# The kernel takes 128 KiB for one variable with its name, "=" and NUL, and a quarter of the stack's limit
# (2 MiB, as a rule) for all with the arguments. What is left of that is the calls' own.
LARGEST_VARIABLE = (128 << 10) - 2
LARGEST_ENVIRONMENT = 3 << 19
_LEFT_TO_CALLS = 512 << 10
_SMALLEST_ENVIRONMENT = 128 << 10
_POINTER = 8

Environ = dict[str, str]


def name_problem(name: str) -> str | None:
    """Why `name` cannot be the name of a variable of the user's, or None."""
    if not _NAME.fullmatch(name):
        return "names of variables are printable ASCII without '='"
    if name.startswith(RESERVED):
        return f"names that begin with {RESERVED} are reserved"
    return None


def checked_variable(name: str, value: str | None, *, field: str) -> str | None:
    """The value, if the kernel could take it. None unsets."""
    if problem := name_problem(name):
        raise invalid(field, problem)
    if value is not None and "\0" in value:
        raise invalid(field, "a value cannot hold NUL")
    if len(name) + len(os.fsencode(value or "")) > LARGEST_VARIABLE:
        raise invalid(field, f"a variable is at most {LARGEST_VARIABLE >> 10} KiB long")
    return value


def size(variables: Iterable[tuple[str, str | None]]) -> int:
    """What the kernel needs for them."""
    return sum(
        len(os.fsencode(name)) + len(os.fsencode(value or "")) + 2 + _POINTER for name, value in variables
    )


def largest() -> int:
    """How large all variables may be so that a command with arguments of its own still starts."""
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if stack == resource.RLIM_INFINITY:
        return LARGEST_ENVIRONMENT
    return max(_SMALLEST_ENVIRONMENT, min(LARGEST_ENVIRONMENT, stack // 4 - _LEFT_TO_CALLS))


def original() -> Environ:
    """The environment as the container was given it.

    Python's own view differs: it sets LC_CTYPE when the locale is C. The kernel's copy can be read only
    before the runtime hides its memory (hardening.py).
    """
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environ)
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs if name}


def inherited(environ: Mapping[str, str], *, has_service_account: bool) -> Environ:
    """Without what is ours, and with what the launcher hid under its old name.

    The kubelet tells every container where the API server is: of use only to a pod with a service account.
    """
    unwanted = (RESERVED,) if has_service_account else (RESERVED, *_KUBELET)
    found = {name: value for name, value in environ.items() if not name.startswith(unwanted)}
    for name, value in environ.items():
        if name.startswith(KEPT) and (old := name.removeprefix(KEPT)):
            found[old] = value
    return found


def completed(
    environ: Mapping[str, str], *, workspace: str, user: str, writable: Callable[[str], bool]
) -> Environ:
    """With the variables that programs expect and an image may lack for the UID it runs as."""
    found = dict(environ)
    found.setdefault("PATH", DEFAULT_PATH)
    home = found.get("HOME", "")
    if home in ("", "/") or not writable(home):
        # Caches, histories and package managers write to HOME; "/" is what a UID without a passwd entry gets.
        places = (workspace, "/tmp", "/var/tmp")  # noqa: S108 (a last resort, and the user's own)
        found["HOME"] = next((place for place in places if writable(place)), "/")
    found.setdefault("USER", user)
    found.setdefault("LOGNAME", found["USER"])
    return found


def merged(environ: Environ, call: Mapping[str, str | None] | None) -> Environ:
    """A call's own variables win; null means "not given", as the client sends it for undefined."""
    if not call:
        return environ
    return environ | {name: value for name, value in call.items() if value is not None}


def user_name(uid: int, *, users: Path = _USERS) -> str:
    """The C library is not asked: it would load the image's own modules into this process, which has the
    credential.
    """
    wanted = str(uid).encode("ascii")
    try:
        with open(users, "rb", opener=_open_at_once) as file:
            lines = (file.read(_USERS_READ) or b"").split(b"\n")
    except OSError:
        return _NOBODY_KNOWN
    for line in lines:
        fields = line.split(b":")
        if len(fields) == 7 and fields[2] == wanted and fields[0]:
            return os.fsdecode(fields[0]).replace("\0", "") or _NOBODY_KNOWN
    return _NOBODY_KNOWN


def _open_at_once(path: str, flags: int) -> int:
    """The image may have a FIFO there, and nobody who writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def is_writable_directory(path: str) -> bool:
    return Path(path).is_dir() and os.access(path, os.W_OK | os.X_OK)


class Environment:
    """What every command starts with. The bind adds to it once; later it can be changed for what starts then,
    and for the sessions that are there.
    """

    def __init__(self, *, image: Mapping[str, str], workspace: str) -> None:
        self._image = inherited(image, has_service_account=_SERVICE_ACCOUNT.exists())
        self._workspace = workspace
        self._bound: Environ = {}
        self._changed: dict[str, tuple[int, str | None]] = {}
        self.revision = 0
        self.variables = self._complete(self._image)

    def bind(self, variables: Mapping[str, str]) -> None:
        self._bound = dict(variables)
        self._renew()

    @property
    def changes(self) -> dict[str, str | None]:
        """All that was set (or with None unset) since the bind."""
        return {name: value for name, (_, value) in self._changed.items()}

    def check_room(self, variables: Mapping[str, str | None]) -> None:
        """Raises Fault when a change would leave an environment with which no command could start."""
        most = largest()
        wanted = self._with(self.changes | dict(variables))
        # What is unset is remembered as well, for sessions and for the next start.
        if size(wanted.items()) > most or size((self.changes | dict(variables)).items()) > most:
            raise invalid("set", f"all variables together are at most {most >> 10} KiB long")

    def change(self, variables: Mapping[str, str | None]) -> None:
        """Set variables for all surfaces, or with None unset them."""
        self.revision += 1
        self._changed |= {name: (self.revision, value) for name, value in variables.items()}
        self._renew()

    def changes_since(self, revision: int) -> dict[str, str | None]:
        """What a shell that was last told at `revision` does not know yet."""
        # Their values as they are now: an unset PATH has its default, also in a shell that lives.
        return {name: self.variables.get(name) for name, (at, _) in self._changed.items() if at > revision}

    def directory(self) -> str:
        """Where a command starts that does not say where. Looked up each time: the user may remove it."""
        for place in (self._workspace, self.variables["HOME"]):
            if Path(place).is_dir() and os.access(place, os.X_OK):
                return place
        return "/"

    def _renew(self) -> None:
        self.variables = self._with(self.changes)

    def _with(self, changes: Mapping[str, str | None]) -> Environ:
        kept = {name: value for name, value in (self._image | self._bound).items() if name not in changes}
        return self._complete(merged(kept, changes))

    def _complete(self, environ: Mapping[str, str]) -> Environ:
        return completed(
            environ,
            workspace=self._workspace,
            user=user_name(os.geteuid()),
            writable=is_writable_directory,
        )
