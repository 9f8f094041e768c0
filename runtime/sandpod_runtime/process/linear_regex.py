"""Regular expressions of clients, matched in a time that is bounded by the text's length times the
expression's: Python's own engine can take for ever, and nobody else in the runtime gets a turn meanwhile.

Python's parser reads the expression; the matcher keeps the set of all places in it where a match may be, and
takes one character after the other. What cannot be matched so (references back, looking ahead) is refused.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

# Private, but as old as `re`; the public module has no way to see what an expression consists of.
_parser: Any = import_module("re._parser")
sre: Any = import_module("re._constants")

# Places in an expression, after `{2,5}` and the like have been written out.
MOST_PLACES = 2000
# Steps that were taken before are remembered: so many, then they are forgotten and learnt again.
_REMEMBERED = 5000

Test = Callable[[str], bool]
_START, _WORD, _OTHER = "start", "word", "other"
_NOTHING: frozenset[int] = frozenset()


class RegexError(ValueError):
    """This cannot be used; the message says why."""


class _Place(NamedTuple):
    """Where a match may be: a character to read, a condition to meet, or ways that lead on."""

    test: Test | None = None
    condition: str = ""
    ways: tuple[int, ...] = ()


class Regex:
    """Searched for in one line after the other; the characters come in any portions."""

    def __init__(self, expression: str) -> None:
        try:
            parsed: Any = _parser.parse(expression)
        except (re.error, RecursionError, OverflowError) as error:
            raise RegexError(f"this is no regular expression: {error}") from error
        compiler = _Compiler(flags=parsed.state.flags)
        try:
            self._first = compiler.sequence(parsed, _Compiler.END)
        except RecursionError as error:
            raise RegexError("it is nested too deeply") from error
        self._places = compiler.places
        self._steps: dict[tuple[frozenset[int], str, str | None], tuple[frozenset[int], bool]] = {}

    def search(self, line: str) -> bool:
        search = Search(self)
        return any(search.feed(character) for character in line) or search.end_line()

    def step(self, at: frozenset[int], before: str, character: str | None) -> tuple[frozenset[int], bool]:
        """From these places over a character; True when there was a match before it.

        The character is "" at the line's end, and None as long as nobody knows how the line goes on.
        """
        key = (at, before, character)
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= _REMEMBERED:
                self._steps.clear()
            found = self._steps[key] = self._step(at, before, character)
        return found

    def _step(self, at: frozenset[int], before: str, character: str | None) -> tuple[frozenset[int], bool]:
        reached: set[int] = set()
        following: set[int] = set()
        waiting = [*at, self._first]  # a match may begin anywhere
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            if number == _Compiler.END:
                return _NOTHING, True
            place = self._places[number]
            if place.test is not None:
                if character and place.test(character):
                    following.update(place.ways)
            elif not place.condition or _holds(place.condition, before, character):
                waiting += place.ways
        return frozenset(following), False


class Search:
    """One line's progress. After a match, feed it nothing more of that line."""

    def __init__(self, regex: Regex) -> None:
        self._regex = regex
        self._at = _NOTHING
        self._before = _START

    def feed(self, character: str) -> bool:
        """Whether there was a match before this character."""
        self._at, found = self._regex.step(self._at, self._before, character)
        self._before = _WORD if _is_word(character) else _OTHER
        return found

    def found_so_far(self) -> bool:
        """Whether there is a match already, whatever follows: a prompt does not end its line."""
        return self._regex.step(self._at, self._before, None)[1]

    def end_line(self) -> bool:
        """Whether there is a match that ends with the line; a new line begins."""
        found = self._regex.step(self._at, self._before, "")[1]
        self._at, self._before = _NOTHING, _START
        return found


def _holds(condition: str, before: str, character: str | None) -> bool:
    if condition == "begin":
        return before == _START
    if character is None:
        return False
    if condition == "end":
        return not character
    at_boundary = (before == _WORD) != (bool(character) and _is_word(character))
    return at_boundary if condition == "boundary" else not at_boundary


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_CATEGORIES: dict[object, Test] = {
    sre.CATEGORY_DIGIT: str.isdecimal,
    sre.CATEGORY_NOT_DIGIT: lambda character: not character.isdecimal(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    sre.CATEGORY_WORD: _is_word,
    sre.CATEGORY_NOT_WORD: lambda character: not _is_word(character),
}
# Lines are searched one by one: the beginning of the text is that of the line.
_CONDITIONS: dict[object, str] = {
    sre.AT_BEGINNING: "begin",
    sre.AT_BEGINNING_STRING: "begin",
    sre.AT_END: "end",
    sre.AT_END_STRING: "end",
    sre.AT_BOUNDARY: "boundary",
    sre.AT_NON_BOUNDARY: "no boundary",
}


class _Compiler:
    """From the parser's tree to places, from the last to the first: each is told what follows it."""

    END = 0

    def __init__(self, *, flags: int) -> None:
        self.places = [_Place()]
        self._ignores_case = bool(flags & re.IGNORECASE)

    def sequence(self, items: Iterable[tuple[Any, Any]], following: int) -> int:
        for kind, value in reversed(list(items)):
            following = self._item(kind, value, following)
        return following

    def _item(self, kind: Any, value: Any, following: int) -> int:
        if kind is sre.AT:
            return self._add(_Place(condition=_CONDITIONS[value], ways=(following,)))
        if kind is sre.BRANCH:
            return self._add(_Place(ways=tuple(self.sequence(each, following) for each in value[1])))
        if kind is sre.SUBPATTERN:
            _, added, removed, items = value
            outside, self._ignores_case = (
                self._ignores_case,
                bool((re.IGNORECASE if self._ignores_case else 0) & ~removed | added & re.IGNORECASE),
            )
            try:
                return self.sequence(items, following)
            finally:
                self._ignores_case = outside
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, repeated = value
            return self._repeat(repeated, least=least, most=most, following=following)
        return self._add(_Place(test=self._test(kind, value), ways=(following,)))

    def _repeat(self, items: Any, *, least: int, most: Any, following: int) -> int:
        if most is sre.MAXREPEAT:
            loop = self._add(_Place())
            self.places[loop] = _Place(ways=(self.sequence(items, loop), following))
            following = loop
        else:
            for _ in range(most - least):
                following = self._add(_Place(ways=(self.sequence(items, following), following)))
        for _ in range(least):
            before = len(self.places)
            following = self.sequence(items, following)
            if len(self.places) == before:
                break  # nothing, however often
        return following

    def _test(self, kind: Any, value: Any) -> Test:
        if kind is sre.ANY:
            return lambda _: True
        if kind is sre.LITERAL:
            return self._cased({chr(value)}.__contains__)
        if kind is sre.NOT_LITERAL:
            return _opposite(self._cased({chr(value)}.__contains__))
        if kind is sre.IN:
            items = list(value)
            negated = bool(items) and items[0][0] is sre.NEGATE
            tests = [self._member(*each) for each in items[negated:]]
            test: Test = lambda character: any(each(character) for each in tests)  # noqa: E731
            return _opposite(test) if negated else test
        raise RegexError(f"{str(kind).lower()} is not possible here: no references, no looking ahead or back")

    def _member(self, kind: Any, value: Any) -> Test:
        if kind is sre.RANGE:
            first, last = map(chr, value)
            return self._cased(lambda character: first <= character <= last)
        if kind is sre.CATEGORY:
            return _CATEGORIES[value]
        return self._test(kind, value)

    def _cased(self, test: Test) -> Test:
        if not self._ignores_case:
            return test
        return lambda character: test(character) or any(map(test, _other_cases(character)))

    def _add(self, place: _Place) -> int:
        if len(self.places) >= MOST_PLACES:
            raise RegexError(f"it is too large: with its repetitions it has more than {MOST_PLACES} places")
        self.places.append(place)
        return len(self.places) - 1


def _opposite(test: Test) -> Test:
    return lambda character: not test(character)


def _other_cases(character: str) -> Iterator[str]:
    yield character.lower()
    yield character.upper()
