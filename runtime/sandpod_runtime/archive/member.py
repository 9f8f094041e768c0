"""One member of an archive, whatever the format, and how a read of a stream that is pushed is written."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal, TypeVar

Kind = Literal["file", "directory", "symlink", "hardlink", "other"]

T = TypeVar("T")
# Code that asks for bytes by yielding, is sent them, and gets b"" at the end. So a stream is unpacked in
# steps, as it comes, without a thread that waits for a slow client.
Reading = Generator[None, bytes, T]


class BadArchiveError(Exception):
    """This cannot be read as an archive; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    # As the archive has it: bytes that are not UTF-8 are kept as surrogates.
    name: str
    kind: Kind
    size: int = 0
    mode: int = 0o644
    mtime_ns: int = 0
    # Where a link leads: of a hard link, the name of another member.
    target: str = ""
    uid: int = 0
    gid: int = 0
    # Why a member of kind "other" cannot be made.
    reason: str = ""
