"""What git tells while it works: lines that it overwrites, as events."""

import re
from dataclasses import dataclass

_LINE = re.compile(
    r"(?:remote: )?([A-Z][A-Za-z ]{2,40}):\s+"
    r"(?:(\d{1,3})% \((\d{1,15})/(\d{1,15})\)|(\d{1,15})(?=[,.\s]|$))"
)
_LONGEST = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    text: str
    phase: str | None = None
    percent: int | None = None
    current: int | None = None
    total: int | None = None


class Lines:
    """Cuts standard error into lines, as a terminal would show them one after the other."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        *lines, rest = re.split(rb"[\r\n]", self._rest + data)
        # A server may send a line without an end.
        self._rest = rest[:_LONGEST]
        return [text for line in lines if (text := _shown(line))]


def parsed(line: str) -> Progress:
    if not (found := _LINE.match(line)):
        return Progress(text=line)
    phase, percent, current, total, counted = found.groups()
    return Progress(
        text=line,
        phase=phase,
        percent=None if percent is None else min(100, int(percent)),
        current=int(current or counted),
        total=None if total is None else int(total),
    )


def _shown(line: bytes) -> str:
    text = line[:_LONGEST].decode("utf-8", "replace")
    # Servers colour what they say and clear the line after it.
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).rstrip()
