"""The termination message: why the runtime ended and what it leaves, for the operator to read from the pod.

It is in the pod's status, which others may read: no command, no environment, no credential. What runs in the
sandbox can write to the same file, so whoever reads it believes nothing.
"""

import os
import stat

import msgspec
from msgspec import UNSET, UnsetType

from sandpod_runtime.lifecycle.life import Reason
from sandpod_runtime.models.lifecycle import SetupState
from sandpod_runtime.options import TERMINATION_LOG

# The kubelet reads no more.
LONGEST = 4096
_LONGEST_DIRECTORY = 512
_LONGEST_DETAIL = 512


class SessionLeft(msgspec.Struct, rename="camel", kw_only=True):
    id: str
    cwd: str


class LastWords(msgspec.Struct, rename="camel", kw_only=True):
    reason: Reason
    last_active_at: str
    ended_at: str
    # Whether all that shall outlive a sleep was written to where it does.
    saved: bool
    # How many of what was running.
    running: dict[str, int]
    sessions: list[SessionLeft]
    setup: SetupState = "none"
    detail: str | UnsetType = UNSET
    # How many sessions are not listed here, for want of room.
    sessions_omitted: int | UnsetType = UNSET


def encoded(words: LastWords) -> bytes:
    """At most LONGEST bytes; when it is too much, sessions are left out from the end."""
    listed = [SessionLeft(id=each.id, cwd=_cut(each.cwd, _LONGEST_DIRECTORY)) for each in words.sessions]
    detail = _cut(words.detail, _LONGEST_DETAIL) if words.detail else UNSET
    for count in range(len(listed), -1, -1):
        omitted = len(listed) - count
        short = msgspec.structs.replace(
            words, sessions=listed[:count], detail=detail, sessions_omitted=omitted or UNSET
        )
        if len(found := msgspec.json.encode(short)) <= LONGEST:
            return found
    raise ValueError("the counts alone are longer than a termination message may be")


def write(path: str, message: bytes) -> None:
    """Only where the kubelet has made the file, or where somebody asked for it. Raises OSError."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
    if path != TERMINATION_LOG:
        flags |= os.O_CREAT
    descriptor = os.open(path, flags, 0o644)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.write(descriptor, message)
    finally:
        os.close(descriptor)


def _cut(text: str, longest: int) -> str:
    """At most so many bytes of JSON: a character may become six of them."""
    if len(msgspec.json.encode(text)) <= longest:
        return text
    while text and len(msgspec.json.encode(text + "…")) > longest:
        text = text[: len(text) * 7 // 8]
    return text + "…"
