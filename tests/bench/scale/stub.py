"""Plays the runtime of every simulated pod: one HTTP server at the one address that all of them have. It
answers what the operator asks as a real runtime would that has nothing to do.

    python -m tests.bench.scale.stub ADDRESS PORT
"""

import sys
from typing import Any, Final

from aiohttp import web

VERSION: Final = "simulated"


async def _bind(request: web.Request) -> web.Response:
    await request.read()
    return web.json_response({"success": True, "runtimeVersion": VERSION})


async def _lifecycle(request: web.Request) -> web.Response:
    """To all of /api/lifecycle, changes and leases too."""
    wanted: dict[str, Any] = await request.json() if request.can_read_body else {}
    return web.json_response(
        {
            "success": True,
            "bound": True,
            "phase": "Running",
            "runtimeVersion": VERSION,
            "runningCommands": 0,
            "sleepAfterSeconds": wanted.get("sleepAfterSeconds", 600),
            "keepAlive": wanted.get("keepAlive", False),
            "awakeBecause": [],
        }
    )


async def _fine(_: web.Request) -> web.Response:
    return web.json_response({"success": True, "version": VERSION})


def main() -> None:
    address, port = sys.argv[1:]
    app = web.Application()
    app.router.add_post("/api/bind", _bind)
    for path in ("/api/lifecycle", "/api/lifecycle/lease", "/api/lifecycle/sleep"):
        app.router.add_route("*", path, _lifecycle)
    app.router.add_get("/api/version", _fine)
    app.router.add_get("/readyz", _fine)
    web.run_app(app, host=address, port=int(port), access_log=None, print=None)


if __name__ == "__main__":
    main()
