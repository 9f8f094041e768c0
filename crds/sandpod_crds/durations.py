"""Durations as people write them in a manifest: `45s`, `10m`, `1h30m`, or whole seconds. The CRD's rule is
built from the patterns here, so that what the API server lets in is what we can read.
"""

import re
from typing import Final

from .errors import BadDuration

# Bounded digits: CEL's duration() overflows beyond 292 years, and an overflow reaches the user as a riddle.
SECONDS_PATTERN: Final = r"^[0-9]{1,9}$"
UNITS_PATTERN: Final = (
    r"^([0-9]{1,5}([.][0-9]{1,3})?h)?([0-9]{1,7}([.][0-9]{1,3})?m)?"
    r"([0-9]{1,9}([.][0-9]{1,3})?s)?([0-9]{1,12}ms)?$"
)
# The longest text that the patterns accept.
MAX_LENGTH: Final = 48

_SECONDS = re.compile(SECONDS_PATTERN, re.ASCII)
_PARTS = re.compile(r"([0-9.]+)(ms|h|m|s)", re.ASCII)
_UNITS = re.compile(UNITS_PATTERN, re.ASCII)
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


def parse(value: str | float) -> float:
    """Seconds. Numbers are seconds already."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < float("inf"):
            raise BadDuration(f"{value} is not a duration: it must be 0 or more seconds")
        return float(value)
    # `$` in Python also matches before a final newline; in the API server's RE2 it does not.
    if isinstance(value, str) and value and not value.endswith("\n"):
        if _SECONDS.match(value):
            return float(value)
        if _UNITS.match(value):
            return sum(_milliseconds(number, unit) for number, unit in _PARTS.findall(value)) / 1000
    raise BadDuration(f"{value!r} is not a duration: write 45s, 10m or 1h30m, or whole seconds such as 600")


def format(seconds: float) -> str:  # noqa: A001 - read as durations.format
    """The shortest text that `parse` reads as these seconds, to the millisecond: 5400 -> `1h30m`."""
    left = round(seconds * 1000)
    if left < 0:
        raise BadDuration(f"{seconds} is negative")
    parts: list[str] = []
    for unit, size in _MILLISECONDS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _milliseconds(number: str, unit: str) -> int:
    # Whole numbers all the way: 0.1 has no exact float, and sums of such would not survive a round trip.
    whole, _, fraction = number.partition(".")
    return int(whole) * _MILLISECONDS[unit] + int(fraction.ljust(3, "0") or 0) * _MILLISECONDS[unit] // 1000
