"""What a GET wants of a file: all, a part, or nothing because it has it already (RFC 9110, 13 and 14)."""

import re
from email.utils import formatdate, parsedate_to_datetime

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class UnsatisfiableError(Exception):
    """A range that begins behind the end."""


def wanted(header: str | None, *, size: int) -> tuple[int, int] | None:
    """Begin and end of one range; None for all. Several ranges, or another unit, may be ignored."""
    match = _RANGE.fullmatch((header or "").replace(" ", ""))
    if not match or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        begin, end = max(0, size - int(last)), size
    else:
        begin, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < begin:
            return None
    if begin >= size:
        raise UnsatisfiableError
    return begin, end


def still_applies(if_range: str | None, *, etag: str, modified: float) -> bool:
    """Whether a range is to be honoured: of another version it would be a wrong one."""
    if not if_range:
        return True
    return if_range == etag if if_range.startswith(('"', "W/")) else if_range == http_date(modified)


def is_known(*, if_none_match: str | None, if_modified_since: str | None, etag: str, modified: float) -> bool:
    """Whether the client has this version."""
    if if_none_match is not None:
        known = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
        return etag in known or known == ["*"]
    if not if_modified_since:
        return False
    try:
        return int(modified) <= parsedate_to_datetime(if_modified_since).timestamp()
    except (ValueError, OverflowError):
        return False


def http_date(seconds: float) -> str:
    try:
        return formatdate(int(seconds), usegmt=True)
    except (ValueError, OverflowError, OSError):
        return formatdate(0, usegmt=True)  # a year that no calendar has: anybody can give a file one
