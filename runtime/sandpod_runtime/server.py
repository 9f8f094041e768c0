"""The whole server: what it consists of, how a request goes through it, how it starts and how it stops.

aiohttp's low-level server, without its application and router: half the start-up, and the protocol's own
rules for paths and errors are easier said here than fought for there.
"""

import asyncio
import gc
import logging
import signal
import socket
from typing import TYPE_CHECKING

from sandpod_runtime import __version__, log
from sandpod_runtime.assembly import Parts, beginning, ending, router, sleeper
from sandpod_runtime.connection import ControlServer, Crowd, most_connections
from sandpod_runtime.door import Door
from sandpod_runtime.gate import Gate
from sandpod_runtime.lifecycle.life import Reason
from sandpod_runtime.listening import BACKLOG
from sandpod_runtime.options import Options

if TYPE_CHECKING:
    from sandpod_runtime.strict.isolation import Isolation

# How many are accepted at a time. asyncio reports a lack of descriptors once for each of them.
_ACCEPTED_AT_ONCE = 8
# As a shell calls an end by SIGTERM. If all containers of a pod that it evicts end with 0, the kubelet
# forgets why: such a pod counts as one that has succeeded.
_TERMINATED = 128 + signal.SIGTERM
# Answers that are on their way when the runtime stops get this long.
_FAREWELL_SECONDS = 0.3

logger = logging.getLogger(__name__)


def run(
    options: Options,
    *,
    sockets: list[socket.socket],
    image: dict[str, str],
    open_files: int | None,
    isolation: "Isolation | None",
) -> int:
    """Returns the exit code. `isolation` is None where nobody asked for more than the container's."""
    log.configure(options.log_level)
    if isolation is not None:
        image |= isolation.variables(image)
        if isolation.reason is not None:
            logger.warning("commands are not isolated", extra={"reason": isolation.reason})
    reason = asyncio.run(
        serve(options, isolation=isolation, image=image, open_files=open_files, sockets=sockets)
    )
    return _TERMINATED if reason == "terminated" else 0


async def serve(
    options: Options,
    *,
    isolation: "Isolation | None",
    image: dict[str, str],
    open_files: int | None,
    sockets: list[socket.socket],
) -> Reason:
    """Until its life is over; returns why it is."""
    loop = asyncio.get_running_loop()
    parts = Parts(options, isolation=isolation, image=image, open_files=open_files)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, parts.life.end, "terminated")
    if options.insecure:
        await beginning(parts).run(steps=[], declared=[])  # there will be no bind
    door = Door(
        gate=Gate(parts.identity, parts.life),
        router=router(parts),
        memory=parts.memory,
        activity=parts.activity,
        requests=parts.requests,
    )
    server = ControlServer(door.handle, crowd=Crowd(most=most_connections()))
    listening: list[asyncio.Server] = []
    for each in sockets:
        listening.append(await loop.create_server(server, sock=each, backlog=_ACCEPTED_AT_ONCE))
        each.listen(BACKLOG)  # asyncio has lowered the kernel's queue to its own number
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
    falling_asleep = loop.create_task(_fall_asleep(parts))
    reason = await parts.life.over()
    logger.info("stopping", extra={"reason": reason, "runningCommands": len(parts.commands)})
    falling_asleep.cancel()
    await ending(parts).run()
    # Not before: a command that ignores SIGTERM could take the free port, and be sent the credential.
    for each in listening:
        each.close()
    server.pre_shutdown()
    await server.shutdown(_FAREWELL_SECONDS)
    parts.state.dispose()
    logger.info("stopped")
    return reason


async def _fall_asleep(parts: Parts) -> None:
    await sleeper(parts).idle()
    # In the same step as the decision: no request can have come between.
    parts.life.end("idle")
