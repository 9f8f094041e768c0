"""Where a client's path leads: an absolute one to itself, others below the session's directory."""

from collections.abc import Callable

import msgspec

from sandpod_runtime.models.files import PathRequest
from sandpod_runtime.paths import checked, resolved
from sandpod_runtime.session.ids import named


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A path as it was sent, which replies repeat, and as the kernel gets it."""

    given: str
    path: str


class Places:
    def __init__(self, directory: Callable[[str | None], str]) -> None:
        """`directory` knows where a session is; it is not asked about absolute paths."""
        self._directory = directory

    def of(self, request: PathRequest) -> Place:
        return self.find(request.path, session_id=request.session_id)

    def find(self, path: str | None, *, session_id: str | None, field: str = "path") -> Place:
        session = named(session_id)
        given = checked(path, field=field)
        if given.startswith("/"):
            return Place(given=given, path=given)
        return Place(given=given, path=resolved(given, base=self._directory(session)))
