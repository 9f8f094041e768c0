"""Things to do at a beginning or an end, where one that fails or hangs must not keep others from theirs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from sandpod_runtime.errors import Fault

Step = Callable[[], Awaitable[object]]
Steps = Mapping[str, Step]

logger = logging.getLogger(__name__)


async def all_within(seconds: float, steps: Steps) -> bool:
    """Side by side; whether all of them were done in time."""
    done = await asyncio.gather(*(_done(name, step, seconds) for name, step in steps.items()))
    return all(done)


async def _done(name: str, step: Step, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await step()
    except TimeoutError:
        logger.warning("this took too long and was given up", extra={"step": name, "seconds": seconds})
        return False
    except Fault as fault:
        # What the sandbox's user has brought about, such as a full disk, is no failure of the runtime's.
        logger.warning("this failed", extra={"step": name, "reason": fault.message})
        return False
    except Exception:
        logger.exception("this failed", extra={"step": name})
        return False
    return True
