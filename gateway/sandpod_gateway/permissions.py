"""What a request to a sandbox needs: the verb and the sub-resource that RBAC has to allow, by the method and
the runtime's path. The table in docs/gateway.md says the same in words.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from .errors import BadRequest, NotFound

# The second segment of /api/…; what is not here is `exec`, the widest of them.
API: Final = {
    "backup": "files",
    "delete": "files",
    "exists": "files",
    "list-files": "files",
    "mkdir": "files",
    "move": "files",
    "port-watch": "ports",
    "ports": "ports",
    "read": "files",
    "rename": "files",
    "watch": "files",
    "write": "files",
}
# The same, with everything that begins so: the runtime adds to these families.
API_FAMILIES: Final = {"file": "files", "process": "processes", "terminal": "terminals"}
SOCKETS: Final = {"pty": "terminals", "terminal": "terminals"}

READING: Final = ("GET", "HEAD")
VERBS: Final = {"GET": "get", "HEAD": "get", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Permission:
    verb: str
    subresource: str


def permission_for(*, method: str, path: str, upgrade: bool) -> Permission:
    """`path` is the runtime's, raw, without the query. Refuses the paths that nobody may reach from outside,
    and those that a runtime could read differently from how they are judged here.
    """
    segments = _segments(unquote(path, errors="surrogateescape"))
    # What is refused encoded must be refused plain, and the other way round.
    if "." in segments or ".." in segments:
        raise BadRequest("the path has a segment . or ..: send the path that it leads to")
    if segments[:2] == ["api", "bind"]:
        raise NotFound("api/bind is between the operator and the runtime")
    if segments[:2] == ["api", "prove"]:
        raise NotFound("api/prove is between the gateway, the operator and the runtime")
    if segments[:2] == ["api", "lifecycle"] and method not in READING:
        # Who may run commands may not for that reason decide when the sandbox sleeps.
        raise NotFound("api/lifecycle can be read here; to put the sandbox to sleep, POST to its sleep")
    # A socket is two-way from the first byte on: `get` alone, which viewers have, must not open a terminal.
    verb = "create" if upgrade else VERBS.get(method, "create")
    # Raw, as the runtime's router matches it: no escape turns one of its paths into another sub-resource's.
    return Permission(verb, _subresource(_segments(path)))


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _subresource(segments: list[str]) -> str:
    if len(segments) < 2:
        return "exec"
    if segments[0] == "ws":
        return SOCKETS.get(segments[1], "exec")
    if segments[0] != "api":
        return "exec"
    for family, subresource in API_FAMILIES.items():
        if segments[1].startswith(family):
            return subresource
    return API.get(segments[1], "exec")
