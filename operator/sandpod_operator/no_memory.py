"""kopf copies every object at every event, several times, to know what has changed since its last handling.
Nobody here asks for that (there are no change handlers), and it was half of the time that an event took.
"""

from typing import Any, cast

import kopf

NOTHING = cast("kopf.BodyEssence", {})


class NoDiffs(kopf.DiffBaseStorage):
    def build(self, **_: Any) -> kopf.BodyEssence:
        return NOTHING

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


class NoProgress(kopf.ProgressStorage):
    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence
