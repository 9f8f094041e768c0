"""`python -m sandpod_operator`: the operator, until it is told to stop."""

import asyncio
import gc
import logging
import sys

import uvloop

from . import watching
from .app import App
from .errors import BadSettings
from .settings import Settings, read_settings

# What is known of thousands of sandboxes lives long. With Python's own thresholds, to look through all of it
# for garbage, again and again, was a fifth of a restart.
GARBAGE_THRESHOLDS = (10_000, 20, 20)

log = logging.getLogger("sandpod_operator")


async def operate(settings: Settings) -> bool:
    """True when it was told to stop, False when it could not start or a part of it has died."""
    app = App(settings)
    try:
        await watching.run(app)
    except Exception:
        if app.cannot_start is None:
            raise
        # Last of all, so that it is what Kubernetes keeps as the container's last words.
        log.critical("the operator cannot start: %s", app.cannot_start)
        return False
    return not app.broken.is_set()


def main() -> int:
    try:
        settings = read_settings()
    except BadSettings as error:
        print(error, file=sys.stderr)  # noqa: T201 - there is no log level yet
        return 2
    watching.configure_logging(settings.log_level)
    # Modules and classes are no garbage as long as the process lives.
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return 0 if runner.run(operate(settings)) else 1


if __name__ == "__main__":
    sys.exit(main())
