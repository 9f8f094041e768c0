"""The environment of the user's commands: the image's own, then what the bind brought, then what the call
brings.

Nothing of the runtime's reaches them: no SANDPOD_ variable, no loader path, no locale that Python made up
for itself.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

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

Environ = dict[str, str]


def name_problem(name: str) -> str | None:
    """Why `name` cannot be the name of a variable of the user's, or None."""
    if not _NAME.fullmatch(name):
        return "names of variables are printable ASCII without '='"
    if name.startswith(RESERVED):
        return f"names that begin with {RESERVED} are reserved"
    return None


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

    def change(self, variables: Mapping[str, str | None]) -> None:
        """Set variables for all surfaces, or with None unset them."""
        self.revision += 1
        self._changed |= {name: (self.revision, value) for name, value in variables.items()}
        self._renew()

    def changes_since(self, revision: int) -> dict[str, str | None]:
        """What a shell that was last told at `revision` does not know yet."""
        return {name: value for name, (at, value) in self._changed.items() if at > revision}

    def directory(self) -> str:
        """Where a command starts that does not say where. Looked up each time: the user may remove it."""
        for place in (self._workspace, self.variables["HOME"]):
            if Path(place).is_dir() and os.access(place, os.X_OK):
                return place
        return "/"

    def _renew(self) -> None:
        changes = {name: value for name, (_, value) in self._changed.items()}
        kept = {name: value for name, value in (self._image | self._bound).items() if name not in changes}
        self.variables = self._complete(merged(kept, changes))

    def _complete(self, environ: Mapping[str, str]) -> Environ:
        return completed(
            environ,
            workspace=self._workspace,
            user=user_name(os.geteuid()),
            writable=is_writable_directory,
        )
