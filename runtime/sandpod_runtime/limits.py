"""How many of a thing there may be at once, with an answer that names the bound."""

from collections.abc import Generator
from contextlib import contextmanager

from sandpod_runtime.errors import Fault


class Slots:
    def __init__(self, what: str, most: int) -> None:
        """`what` in the plural, as the error says it: "log streams"."""
        self._what = what
        self._most = most
        self.taken = 0

    def take(self) -> None:
        if self.taken >= self._most:
            raise Fault(
                "RESOURCE_BUSY",
                f"there are {self._most} {self._what}, which is the limit",
                suggestion="end one of them first",
            )
        self.taken += 1

    def give(self) -> None:
        self.taken -= 1

    @contextmanager
    def one(self) -> Generator[None]:
        self.take()
        try:
            yield
        finally:
            self.give()
