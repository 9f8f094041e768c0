"""Writes of objects that others write too, each made on the condition that nobody came in between."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from sandpod_crds import errors as api

T = TypeVar("T")

# Each of the others wins once.
ATTEMPTS: Final = 6
PAUSE: Final = 0.02


async def until_it_fits(attempt: Callable[[], Awaitable[T]]) -> T:
    """`attempt` reads, and writes on condition. The last conflict is the caller's."""
    number = 1
    while True:
        try:
            return await attempt()
        except api.Conflict:
            if number == ATTEMPTS:
                raise
        # Jitter, or two that collided would collide again.
        await asyncio.sleep(PAUSE * number * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
        number += 1
