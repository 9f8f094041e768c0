"""`python -m sandpod_gateway`: the settings, the event loop, the signals, the exit code."""

import asyncio
import logging
import os
import signal
import sys

import uvloop
from pydantic import ValidationError
from sandpod_crds.errors import NotConfigured
from sandpod_crds.kube import Kube
from sandpod_crds.names import SETTINGS_ENV

from .gateway import Gateway
from .settings import Settings

log = logging.getLogger(__package__)


async def serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # The first one drains. A second one is somebody who does not want to wait.
        loop.add_signal_handler(number, lambda: os._exit(1) if stop.is_set() else stop.set())
    kube = await Kube.connect()
    try:
        await Gateway(settings=settings, kube=kube).run(stop)
    finally:
        await kube.close()


def main() -> int:
    try:
        settings = Settings.from_json(os.environ.get(SETTINGS_ENV, ""))
    except ValidationError as error:
        sys.stderr.write(f"{SETTINGS_ENV} is not usable: {error}\n")
        return 2
    # To standard error: standard output holds audit lines and nothing else.
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        uvloop.run(serve(settings))
    except NotConfigured as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
