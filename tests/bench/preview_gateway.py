"""A gateway on loopback in a process of its own, for previews.py, which gives it the ports of two programs
and perhaps the folder that it shares with an HAProxy. Prints its port and the hosts of the programs'
previews, and ends with its standard input.
"""

import asyncio
import json
import logging
import sys

import uvloop

from tests.support.gateway_harness import harness
from tests.support.haproxy import FOLDER


async def serve(small: int, large: int, folder: str) -> None:
    async with harness() as gateway:
        gateway.programs["10.0.0.1", 8080] = small
        gateway.programs["10.0.0.1", 9000] = large
        await gateway.start(sockets=folder, haproxy_map=str(FOLDER / "hosts.map"))
        await gateway.raw_runtime()
        await gateway.expose("hello", {"port": 8080}, {"port": 9000})
        hosts = [gateway.preview_host("hello", port=port) for port in (8080, 9000)]
        sys.stdout.write(json.dumps({"port": gateway.gateway.http_port, "hosts": hosts}) + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    logging.basicConfig(level="WARNING")
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""))
