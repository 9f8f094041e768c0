"""The whole server: what it consists of, how a request goes through it, how it starts and how it stops.

aiohttp's low-level server, without its application and router: half the start-up, and the protocol's own
rules for paths and errors are easier said here than fought for there.
"""

import asyncio
import gc
import logging
import signal
import socket
from typing import Any, cast

from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from sandpod_runtime import __version__, budget, environment, hardening, log
from sandpod_runtime.environment import Environment
from sandpod_runtime.errors import Fault
from sandpod_runtime.gate import Gate
from sandpod_runtime.identity import Identity
from sandpod_runtime.options import Options
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.routing import Routes, find, route_of
from sandpod_runtime.surfaces.basics import Basics
from sandpod_runtime.surfaces.exec import Exec
from sandpod_runtime.surfaces.lifecycle import Lifecycle
from sandpod_runtime.wire import Bodies, Request, empty_reply, fault_reply

_BACKLOG = 512
# Answers that are on their way when the runtime stops get this long.
_FAREWELL_SECONDS = 1.0
# A client whose body was refused may still be sending it, and would not see the answer if we hung up at once.
_LINGERING_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Door:
    """What every request goes through: the gate, the routes, and the translation of failures."""

    def __init__(self, *, gate: Gate, routes: Routes, memory: budget.Budget) -> None:
        self._gate = gate
        self._routes = routes
        self._memory = memory

    async def handle(self, base: BaseRequest) -> StreamResponse:
        request = cast("Request", base)
        if request.method == "OPTIONS":
            return empty_reply()
        route = route_of(request)
        try:
            self._gate.admit(request, route)
            return await find(self._routes, route)(request)
        except Fault as fault:
            return fault_reply(fault)
        except ConnectionError:
            raise  # the client has gone: aiohttp tidies up
        except Exception:
            logger.exception("a handler failed", extra={"route": " ".join(route)})
            return fault_reply(Fault("INTERNAL_ERROR", "the runtime failed; its log says how"))
        finally:
            self._memory.give(request.charged)
            request.charged = 0


class Connection(RequestHandler):
    """aiohttp's connection, whose answers to what is not HTTP are the protocol's errors as well."""

    __slots__ = ()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("half a reply was sent; another one would be taken for its rest")
        if status == 400:
            reply = fault_reply(Fault("VALIDATION_FAILED", f"this is not HTTP/1.1: {message}"[:500]))
        else:
            logger.error("a request failed", exc_info=exc)
            reply = fault_reply(Fault("INTERNAL_ERROR", "the runtime failed; its log says how"))
        reply.force_close()
        return reply


class ControlServer(Server):
    def __init__(self, door: Door) -> None:
        # Cancellation is how a handler learns that its client hung up.
        super().__init__(door.handle, request_factory=self._request, handler_cancellation=True)

    def __call__(self) -> RequestHandler:
        return Connection(
            self,
            loop=asyncio.get_running_loop(),
            access_log=cast("Any", None),
            auto_decompress=False,  # a small body could become a large one
            lingering_time=_LINGERING_SECONDS,
        )

    @staticmethod
    def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Request:
        return Request(message, payload, protocol, writer, task, asyncio.get_running_loop())


def run(options: Options) -> int:
    log.configure(options.log_level)
    image = environment.original()
    open_files = hardening.prepare_files()
    hardening.harden()
    try:
        sockets = listeners(options)
    except OSError as error:
        logger.error("cannot listen", extra={"port": options.port, "reason": str(error)})
        return 1
    asyncio.run(serve(options, image=image, open_files=open_files, sockets=sockets))
    return 0


def listeners(options: Options) -> list[socket.socket]:
    """All addresses of both families, or with --insecure the two loopback ones."""
    if not options.insecure:
        if socket.has_dualstack_ipv6():
            return [
                socket.create_server(
                    ("::", options.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
                )
            ]
        return [socket.create_server(("0.0.0.0", options.port), backlog=_BACKLOG)]
    first = socket.create_server(("127.0.0.1", options.port), backlog=_BACKLOG)
    try:
        port = first.getsockname()[1]
        return [first, socket.create_server(("::1", port), family=socket.AF_INET6, backlog=_BACKLOG)]
    except OSError:
        return [first]  # no IPv6 here


async def serve(
    options: Options, *, image: dict[str, str], open_files: int | None, sockets: list[socket.socket]
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    memory = budget.for_this_machine()
    bodies = Bodies(memory)
    variables = Environment(image=image, workspace=options.workspace)
    identity = Identity(bind_sha256=options.bind_sha256, insecure=options.insecure)
    commands = Commands(open_files=open_files)
    gate = Gate(identity)
    routes = (
        Basics(environment=variables).routes()
        | Lifecycle(identity=identity, environment=variables, commands=commands, bodies=bodies).routes()
        | Exec(commands=commands, environment=variables, bodies=bodies, memory=memory).routes()
    )
    server = ControlServer(Door(gate=gate, routes=routes, memory=memory))
    listening = [await loop.create_server(server, sock=each, backlog=_BACKLOG) for each in sockets]
    # What the imports made stays for good: the collector need not look at it again.
    gc.freeze()
    gc.enable()
    logger.info(
        "listening",
        extra={
            "port": sockets[0].getsockname()[1],
            "version": __version__,
            "insecure": options.insecure,
            "workspace": options.workspace,
        },
    )
    await stop.wait()
    logger.info("stopping", extra={"runningCommands": len(commands)})
    gate.draining = True
    await commands.end_all()
    # Not before: a command that ignores SIGTERM could take the free port, and be sent the credential.
    for each in listening:
        each.close()
    server.pre_shutdown()
    await server.shutdown(_FAREWELL_SECONDS)
    logger.info("stopped")
