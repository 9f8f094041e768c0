"""The bind, which tells a started runtime whom it is for, and what can be seen of it afterwards."""

import logging

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime import __version__
from sandpod_runtime.clock import timestamp
from sandpod_runtime.environment import Environment, name_problem
from sandpod_runtime.errors import invalid
from sandpod_runtime.gate import BIND
from sandpod_runtime.identity import Identity
from sandpod_runtime.models.lifecycle import BindReply, BindRequest, LifecycleReply
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import Bodies, Request, reply

TOKEN_HEADER = "X-Sandpod-Bind-Token"  # noqa: S105 (the header's name)

logger = logging.getLogger(__name__)
_decoder = msgspec.json.Decoder(BindRequest)


class Lifecycle:
    def __init__(
        self, *, identity: Identity, environment: Environment, commands: Commands, bodies: Bodies
    ) -> None:
        self._identity = identity
        self._environment = environment
        self._commands = commands
        self._bodies = bodies

    def routes(self) -> Routes:
        return {
            BIND: Endpoint(
                handler=self._bind,
                tag="lifecycle",
                summary="The operator tells the runtime whom it is for; once.",
                body=BindRequest,
                reply=BindReply,
                errors=("UNAUTHENTICATED", "ALREADY_BOUND"),
            ),
            ("GET", "/api/lifecycle"): Endpoint(
                handler=self._show,
                tag="lifecycle",
                summary="Whom the runtime is for, since when, and when it will sleep.",
                reply=LifecycleReply,
            ),
        }

    async def _bind(self, request: Request) -> StreamResponse:
        self._identity.check_token(request.headers.get(TOKEN_HEADER, ""))
        wanted = await self._bodies.read(request, _decoder)
        for name, value in wanted.env.items():
            if problem := name_problem(name):
                raise invalid(f"env.{name}", problem)
            if "\0" in value:
                raise invalid(f"env.{name}", "a value cannot hold NUL")
        self._identity.bind(wanted)
        self._environment.bind(wanted.env)
        logger.info(
            "bound",
            extra={
                "sandbox": f"{wanted.sandbox.namespace}/{wanted.sandbox.name}",
                "sandboxUid": wanted.sandbox.uid,
                "pod": wanted.pod.name,
            },
        )
        return reply(BindReply(runtime_version=__version__))

    async def _show(self, _: Request) -> StreamResponse:
        bound = self._identity.bound
        about = LifecycleReply(
            bound=bound is not None,
            runtime_version=__version__,
            started_at=timestamp(self._identity.started_at),
            running_commands=len(self._commands),
        )
        if bound is not None:
            about.bound_at = timestamp(bound.at)
            about.sandbox = bound.request.sandbox
            about.pod = bound.request.pod
            about.sleep_after_seconds = bound.request.lifecycle.sleep_after_seconds
            about.keep_alive = bound.request.lifecycle.keep_alive
        return reply(about)
