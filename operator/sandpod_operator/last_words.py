"""Reads what a runtime left in its pod's status when it ended: why, since when nobody worked, which sessions
there were. Code in the sandbox can write there too, so nothing in it is believed beyond the sandbox itself.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sandpod_crds.models import SessionStatus

from .objects import Json
from .times import parse_time

MOST_SESSIONS = 256
LONGEST_ID = 256
LONGEST_DIRECTORY = 1024
# So long without work, and a sandbox can as well sleep as move to another node.
QUIET = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True, slots=True)
class LastWords:
    """`reason`: idle, requested or terminated."""

    reason: str
    detail: str = ""
    last_active_at: datetime | None = None
    ended_at: datetime | None = None
    # Whether sessions and environment were written to where a later pod finds them.
    saved: bool = False
    sessions: tuple[SessionStatus, ...] = ()

    @property
    def slept(self) -> bool:
        """It ended because it was time to, and not because somebody took its pod away."""
        return self.reason in ("idle", "requested")

    @property
    def quiet(self) -> bool:
        """Nobody has worked in it for a while. Both times are the node's, whatever its clock shows."""
        if self.last_active_at is None or self.ended_at is None:
            return False
        return self.ended_at - self.last_active_at >= QUIET


def read_last_words(message: str) -> LastWords | None:
    """None for anything that is not a runtime's message."""
    try:
        found: Any = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    words = cast("Json", found)
    reason = words.get("reason")
    if reason not in ("idle", "requested", "terminated"):
        return None
    return LastWords(
        reason=reason,
        detail=_text(words.get("detail"), longest=64),
        last_active_at=_moment(words.get("lastActiveAt")),
        ended_at=_moment(words.get("endedAt")),
        saved=words.get("saved") is True,
        sessions=_sessions(words.get("sessions")),
    )


def _sessions(found: Any) -> tuple[SessionStatus, ...]:
    listed = cast("list[Any]", found)[:MOST_SESSIONS] if isinstance(found, list) else []
    sessions: dict[str, SessionStatus] = {}
    for each in listed:
        entry = cast("Json", each) if isinstance(each, dict) else Json()
        session_id = _text(entry.get("id"), longest=LONGEST_ID)
        # The API server refuses a status that has one twice.
        if session_id and session_id not in sessions:
            directory = _text(entry.get("cwd"), longest=LONGEST_DIRECTORY)
            sessions[session_id] = SessionStatus(id=session_id, cwd=directory or None)
    return tuple(sessions.values())


def _text(found: Any, *, longest: int) -> str:
    if not isinstance(found, str):
        return ""
    # Half of a surrogate pair is text to Python and an error to the API server.
    return found[:longest].encode(errors="replace").decode().replace("\0", "")


def _moment(found: Any) -> datetime | None:
    try:
        moment = parse_time(found) if isinstance(found, str) else None
        # A time without a zone cannot be compared; in the year 1, no zone can be changed.
        return moment.astimezone(UTC).replace(microsecond=0) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
