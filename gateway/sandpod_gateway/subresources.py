"""What stands behind a sandbox's name, at both doors: `proxy` with the runtime's own API, and beside it
`wake`, `sleep` and `ports`. Here a path is told apart; who may is asked in the room behind.
"""

import re
from typing import Final

from aiohttp import web
from sandpod_crds.names import SANDBOXES

from .audit import Exchange
from .errors import NotFound
from .login_api import LoginApi
from .permissions import VERBS, Permission
from .ports_api import PortsApi
from .private import PERMISSION as OPEN_PRIVATE
from .sandbox_api import Call, SandboxApi

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
# A name that is longer is nobody's, and would be kept with every decision about it.
NAMESPACE: Final = rf"(?=[^/]{{1,63}}(?:/|$))(?P<namespace>{_LABEL})"
NAME: Final = rf"(?=[^/]{{1,253}}(?:/|$))(?P<name>{_LABEL}(?:\.{_LABEL})*)"
# Below each door's own beginning
SANDBOX: Final = rf"namespaces/{NAMESPACE}/{SANDBOXES}/{NAME}(?P<rest>/.*)"

_REST: Final = re.compile(r"/(?P<word>[a-z]+)(?P<more>(?:/.*)?)")
_LOGIN: Final = re.compile(r"/(?P<port>[1-9][0-9]{0,4})/login")
_ALL: Final = ("proxy/…", "wake", "sleep", "ports")


class Subresources:
    def __init__(self, *, sandboxes: SandboxApi, ports: PortsApi, logins: LoginApi) -> None:
        self._sandboxes = sandboxes
        self._logins = logins
        self._ports = ports

    async def serve(
        self, request: web.BaseRequest, call: Call, rest: str, exchange: Exchange
    ) -> web.StreamResponse:
        """`rest` is what follows the sandbox's name, without the query."""
        found = _REST.fullmatch(rest)
        match (found["word"], found["more"]) if found else ("", ""):
            case ("proxy", _):
                return await self._sandboxes.serve(request, call, exchange)
            case ("wake", ""):
                return await self._sandboxes.wake(request, call, exchange)
            case ("sleep", ""):
                return await self._sandboxes.sleep(request, call, exchange)
            case ("ports", more) if login := _LOGIN.fullmatch(more):
                # Not `create`: it opens nothing that the same person could not open with his own token.
                await self._sandboxes.authorize(call, OPEN_PRIVATE, exchange)
                return await self._logins.serve(
                    request, (call.namespace, call.name), int(login["port"]), call.identity, exchange
                )
            case ("ports", more):
                verb = VERBS.get(request.method, "create")
                await self._sandboxes.authorize(call, Permission(verb, "ports"), exchange)
                return await self._ports.serve(request, (call.namespace, call.name), more, exchange)
            case _:
                raise NotFound(f"nothing is at this path: behind a sandbox's name are {', '.join(_ALL)}")


def target_of(rest: str, query: str) -> str:
    """The runtime's path and query, when what follows the name is `/proxy…`; `query` with its mark."""
    return (rest.removeprefix("/proxy") or "/") + query
