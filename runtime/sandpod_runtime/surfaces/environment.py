"""The environment of the user's commands: shown, and changed for all surfaces at once."""

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.environment import Environment, checked_variable
from sandpod_runtime.environment_store import EnvironmentStore
from sandpod_runtime.errors import invalid
from sandpod_runtime.models.environment import (
    ChangeEnvironmentReply,
    ChangeEnvironmentRequest,
    EnvironmentReply,
)
from sandpod_runtime.paths import shown
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import Bodies, Request, reply

_decoder = msgspec.json.Decoder(ChangeEnvironmentRequest)


class EnvironmentSurface:
    def __init__(self, *, environment: Environment, store: EnvironmentStore, bodies: Bodies) -> None:
        self._environment = environment
        self._store = store
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            ("GET", "/api/environment"): Endpoint(
                handler=self._show,
                tag="environment",
                summary="The variables that commands start with.",
                reply=EnvironmentReply,
            ),
            ("POST", "/api/environment"): Endpoint(
                handler=self._change,
                tag="environment",
                summary="Set and unset variables, for all that starts from now on and for living sessions.",
                body=ChangeEnvironmentRequest,
                reply=ChangeEnvironmentReply,
                errors=("NO_SPACE", "FILESYSTEM_ERROR"),
            ),
        }

    async def _show(self, _: Request) -> StreamResponse:
        # An image's variables are bytes, and any of them may be something else than UTF-8.
        found = {shown(name): shown(value) for name, value in self._environment.variables.items()}
        return reply(EnvironmentReply(variables=dict(sorted(found.items()))))

    async def _change(self, request: Request) -> StreamResponse:
        body = await self._bodies.read(request, _decoder)
        changes: dict[str, str | None] = {}
        for name, value in body.set.items():
            changes[name] = checked_variable(name, value, field=f"set.{name}")
        for number, name in enumerate(body.unset):
            if name in body.set:
                raise invalid(f"unset[{number}]", "this variable is set by the same request")
            changes[name] = checked_variable(name, None, field=f"unset[{number}]")
        if not changes:
            raise invalid("set", "give variables to set or names to unset")
        await self._store.change(changes)
        return reply(ChangeEnvironmentReply(changed=sorted(changes), count=len(self._environment.variables)))
