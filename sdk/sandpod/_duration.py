"""Durations as people type them: `45s`, `1h30m`, `500ms`, or a number of seconds."""

from __future__ import annotations

import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
# A day count that a 64-bit number of milliseconds and every timer in between can hold.
_LONGEST = 366 * 24 * 3600.0


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError with a sentence that says how to write one."""
    seconds = _seconds(text)
    if seconds is None:
        raise ValueError(f"{text!r} is not a duration: write it as 45s, 10m or 1h30m")
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is longer than a year")
    return seconds


def _seconds(text: str) -> float | None:
    if _NUMBER.fullmatch(text):
        return float(text)
    parts = list(_PART.finditer(text))
    if not parts or "".join(part.group() for part in parts) != text:
        return None
    return sum(float(part[1]) * _SECONDS[part[2]] for part in parts)


def format_duration(seconds: float) -> str:
    """How long something took or may take, for people: `0.62s`, `45s`, `2m`, `1h30m`."""
    if seconds < 10 and seconds != int(seconds):
        return f"{max(seconds, 0.01):.2g}s" if seconds < 1 else f"{seconds:.1f}s"
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
