"""Waiting until a process has written something: a text, or a line that a regular expression matches."""

import asyncio
import codecs

from sandpod_runtime.models.processes import StreamName
from sandpod_runtime.process.linear_regex import Regex, Search
from sandpod_runtime.process.logbook import Logbook, StreamLog

# Of a line that is longer only the beginning is matched, and shown.
LONGEST_LINE = 4096
# How much is looked at before others get their turn: searching for a text is quick, matching is not.
_TEXT_SLICE = 65_536
_REGEX_SLICE = 2048


class TextFinder:
    slice = _TEXT_SLICE

    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = ""

    def feed(self, chunk: str) -> str | None:
        """The line in which it was found."""
        seen = self._rest + chunk
        if (place := seen.find(self._text)) >= 0:
            start = seen.rfind("\n", 0, place) + 1
            end = seen.find("\n", place + len(self._text))
            return seen[start : end if end >= 0 else len(seen)][:LONGEST_LINE]
        unfinished = min(len(seen) - seen.rfind("\n") - 1, LONGEST_LINE)
        self._rest = seen[max(0, len(seen) - max(unfinished, len(self._text) - 1)) :]
        return None

    def end(self) -> str | None:
        return None

    def skip(self) -> None:
        """What follows does not continue what was fed."""
        self._rest = ""


class RegexFinder:
    slice = _REGEX_SLICE

    def __init__(self, regex: Regex) -> None:
        self._regex = regex
        self._search = Search(regex)
        self._line: list[str] = []

    def feed(self, chunk: str) -> str | None:
        for character in chunk:
            if character == "\n":
                if (line := self.end()) is not None:
                    return line
            elif character != "\r" and len(self._line) < LONGEST_LINE:
                if self._search.feed(character):
                    return "".join(self._line)
                self._line.append(character)
        return "".join(self._line) if self._search.found_so_far() else None

    def end(self) -> str | None:
        line = "".join(self._line)
        self._line.clear()
        # A line whose end was not looked at does not end there.
        found = self._search.end_line() if len(line) < LONGEST_LINE else False
        if len(line) >= LONGEST_LINE:
            self.skip()
        return line if found else None

    def skip(self) -> None:
        self._search = Search(self._regex)
        self._line.clear()


Finder = TextFinder | RegexFinder


class Watch:
    """A finder's place in one stream."""

    def __init__(self, name: StreamName, log: StreamLog, finder: Finder) -> None:
        self.name: StreamName = name
        self._log = log
        self._place = log.start
        self._finder = finder
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_behind(self) -> bool:
        return self._place < self._log.total

    def look(self) -> str | None:
        if self._place < self._log.start:
            self._place = self._log.start
            self._decoder.reset()
            self._finder.skip()
        data = self._log.read(self._place, self._finder.slice)
        self._place += len(data)
        return self._finder.feed(self._decoder.decode(data))

    def end(self) -> str | None:
        return self._finder.end()


async def found(log: Logbook, watches: list[Watch], *, turn: asyncio.Lock) -> tuple[StreamName, str] | None:
    """The stream's name and the line; None when the log ends without. `turn` is for all who search: however
    many they are, others come between any two looks.
    """
    while True:
        behind = [watch for watch in watches if watch.is_behind]
        for watch in behind:
            async with turn:
                if (line := watch.look()) is not None:
                    return watch.name, line
                await asyncio.sleep(0)
        if behind:
            continue
        if log.closed:
            for watch in watches:
                if (line := watch.end()) is not None:
                    return watch.name, line
            return None
        await log.more(None)
