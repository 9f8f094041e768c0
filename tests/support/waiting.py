"""Waiting for what has no watch: ask until it holds, and show the last answer when it never does."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NeverHappenedError(AssertionError):
    """The condition did not come true in time."""


def eventually(check: Callable[[], T | None], *, timeout: float = 30, every: float = 0.1) -> T:
    """What `check` returns once it raises no AssertionError and returns neither False nor None."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            found = check()
        except AssertionError as failure:
            found, reason = None, failure
        else:
            reason = AssertionError(f"the last answer was {found!r}")
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline:
            raise NeverHappenedError(f"not within {timeout} s: {reason}") from reason
        time.sleep(every)
