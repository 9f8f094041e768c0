"""What a subscriber has still to be told: equal changes once, in the order in which they first came."""

from typing import Literal, NamedTuple

Kind = Literal["create", "modify", "delete", "move_from", "move_to", "attrib"]
# Of the protocol.
MOST = 1000


class Change(NamedTuple):
    kind: Kind
    path: str
    is_directory: bool


class Pending:
    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._found: dict[Change, str] = {}
        # How many did not fit.
        self.lost = 0

    def __len__(self) -> int:
        return len(self._found)

    @property
    def is_half_full(self) -> bool:
        return 2 * len(self._found) >= self._most

    def add(self, change: Change, *, at: str) -> None:
        """An equal change keeps its place and gets the later time."""
        if change in self._found or len(self._found) < self._most:
            self._found[change] = at
        else:
            self.lost += 1

    def take(self) -> list[tuple[Change, str]]:
        taken = list(self._found.items())
        self._found.clear()
        return taken
