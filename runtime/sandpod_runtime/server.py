"""The whole server: what it consists of, how a request goes through it, how it starts and how it stops.

aiohttp's low-level server, without its application and router: half the start-up, and the protocol's own
rules for paths and errors are easier said here than fought for there.
"""

import asyncio
import gc
import logging
import resource
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
# How many are accepted at a time. asyncio reports a lack of descriptors once for each of them.
_ACCEPTED_AT_ONCE = 8
# Connections come before any credential: strangers must not take all descriptors, or wait for ever.
_MOST_CONNECTIONS = 1000
_HEAD_SECONDS = 10.0
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
    """aiohttp's connection, which must soon say what it wants, and whose answers to what is not HTTP are the
    protocol's errors as well.
    """

    __slots__ = ("_crowd", "_patience")

    def __init__(self, crowd: "Crowd", server: Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._crowd = crowd
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        real = cast("asyncio.Transport", transport)
        if not self._crowd.enter(self):
            real.abort()
            return
        super().connection_made(transport)
        self._patience = self._loop.call_later(self._crowd.head_seconds, real.abort)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._crowd.leave(self)
        self.head_is_complete()
        super().connection_lost(exc)

    def head_is_complete(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

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


class Crowd:
    """The connections that are open, and the bounds on them."""

    def __init__(self, *, most: int, head_seconds: float = _HEAD_SECONDS) -> None:
        self.head_seconds = head_seconds
        self._most = most
        self._present: set[RequestHandler] = set()

    def enter(self, connection: RequestHandler) -> bool:
        if len(self._present) >= self._most:
            return False
        self._present.add(connection)
        return True

    def leave(self, connection: RequestHandler) -> None:
        self._present.discard(connection)


class ControlServer(Server):
    def __init__(self, door: Door, *, crowd: Crowd) -> None:
        # Cancellation is how a handler learns that its client hung up.
        super().__init__(door.handle, request_factory=self._request, handler_cancellation=True)
        self._crowd = crowd

    def __call__(self) -> RequestHandler:
        return Connection(
            self._crowd,
            self,
            loop=asyncio.get_running_loop(),
            access_log=cast("Any", None),
            auto_decompress=False,  # a small body could become a large one
            lingering_time=_LINGERING_SECONDS,
        )

    @staticmethod
    def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> Request:
        cast("Connection", protocol).head_is_complete()
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


def most_connections() -> int:
    """At most half of the descriptors: commands need theirs."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(_MOST_CONNECTIONS, files // 2)


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
    crowd = Crowd(most=most_connections())
    server = ControlServer(Door(gate=gate, routes=routes, memory=memory), crowd=crowd)
    listening: list[asyncio.Server] = []
    for each in sockets:
        listening.append(await loop.create_server(server, sock=each, backlog=_ACCEPTED_AT_ONCE))
        each.listen(_BACKLOG)  # asyncio has lowered the kernel's queue to its own number
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
