"""Who makes a request, as a door has established it. Hashable, because decisions are cached by it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
