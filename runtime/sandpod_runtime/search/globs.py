"""Globs as regular expressions: `*`, `?`, `[…]`, `**` between slashes, and a backslash before what is meant
literally; `{a,b}` by expansion.

The expressions match in linear time, because they come from clients and from files in the sandbox: what
follows a star is in an atomic group, so a match is sought once and never again. That is right for globs:
the first place where the fixed text fits leaves the most room for the rest.
"""

import re
from collections.abc import Iterator

MOST_EXPANSIONS = 256
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class GlobError(ValueError):
    """This is not a glob; the message says why."""


def translated(glob: str) -> str:
    """The regular expression, for `re.compile(…, re.DOTALL).match`."""
    pieces = list(_between_double_stars(glob))
    first = _piece(pieces[0], is_last=len(pieces) == 1)
    return first + "".join(
        f"(?>(?:.*?/)??{_piece(piece, is_last=number == len(pieces))})"
        for number, piece in enumerate(pieces[1:], 2)
    )


def expanded(glob: str) -> list[str]:
    """Without braces: `a.{c,h}` becomes `a.c` and `a.h`."""
    waiting = [glob]
    done: list[str] = []
    while waiting:
        if len(waiting) + len(done) > MOST_EXPANSIONS:
            raise GlobError(f"its braces stand for more than {MOST_EXPANSIONS} globs, which is the limit")
        one = waiting.pop()
        if (choice := _first_choice(one)) is None:
            done.append(one)
            continue
        start, end, parts = choice
        waiting += [one[:start] + part + one[end:] for part in reversed(parts)]
    return done


def _between_double_stars(glob: str) -> Iterator[str]:
    """Split at each `**/` that begins a segment; `**` beside other characters is no more than a star."""
    start = at = 0
    while at < len(glob):
        if glob[at] == "\\":
            at += 2
            continue
        if glob[at] == "[":
            at = _bracket(glob, at)[1]
            continue
        end = _stars_end(glob, at)
        if end - at >= 2 and glob[end : end + 1] == "/" and (at == 0 or glob[at - 1] == "/"):
            yield glob[start:at]
            start = at = end + 1
            continue
        at = max(end, at + 1)
    yield glob[start:]


def _stars_end(glob: str, at: int) -> int:
    while glob[at : at + 1] == "*":
        at += 1
    return at


def _piece(glob: str, *, is_last: bool) -> str:
    out: list[str] = []
    groups = at = 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            end = _stars_end(glob, at)
            if is_last and end == len(glob) and end - at >= 2 and (at == 0 or glob[at - 1] == "/"):
                return "".join(out) + ".*" + ")" * groups + "\\Z"
            # Each star is inside the group of the one before it: closed together, at the end, a group would
            # hold what comes after it too, and could not be left early.
            if groups:
                out.append(")")
            out.append("(?>[^/]*?")
            groups = 1
            at = end
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[":
            text, at = _bracket(glob, at)
            out.append(text)
        elif char == "\\":
            if at + 1 == len(glob):
                raise GlobError("it ends with a backslash")
            out.append(re.escape(glob[at + 1]))
            at += 2
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out) + ("\\Z" if is_last else "") + ")" * groups


def _bracket(glob: str, start: int) -> tuple[str, int]:
    """The class that begins at `start`, and where the glob goes on after it."""
    at = start + 1
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    previous = ""
    first = True
    while first or glob[at : at + 1] != "]":
        first = False
        if at >= len(glob):
            raise GlobError("it has a [ without its ]")
        char = glob[at]
        end = glob.find("]", at + 2) if glob.startswith("[:", at) else -1
        if end > at + 2 and glob[end - 1] == ":":
            name = glob[at + 2 : end - 1]
            if name not in _CLASSES:
                raise GlobError(f"it has an unknown class [:{name}:]")
            items.append(_CLASSES[name])
            previous = ""
            at = end + 1
            continue
        if char == "-" and previous and glob[at + 1 : at + 2] not in ("", "]"):
            char, at = _class_character(glob, at + 1)
            if previous <= char:
                items.append(f"{re.escape(previous)}-{re.escape(char)}")
            previous = ""
            continue
        char, at = _class_character(glob, at)
        items.append(re.escape(char))
        previous = char
    # A class never means a slash, whatever it says.
    inside = "".join(items)
    if negated:
        return (f"[^/{inside}]", at + 1)
    return (f"(?!/)[{inside}]" if inside else "(?!)", at + 1)


def _class_character(glob: str, at: int) -> tuple[str, int]:
    if glob[at] != "\\":
        return glob[at], at + 1
    if at + 1 == len(glob):
        raise GlobError("it has a [ without its ]")
    return glob[at + 1], at + 2


def _first_choice(glob: str) -> tuple[int, int, list[str]] | None:
    """Where the first `{…,…}` begins and ends, and its parts. Braces without a comma are themselves."""
    at = 0
    while at < len(glob):
        if glob[at] == "\\":
            at += 2
            continue
        if glob[at] == "{" and (found := _choice_at(glob, at)) is not None:
            return at, *found
        at += 1
    return None


def _choice_at(glob: str, start: int) -> tuple[int, list[str]] | None:
    parts: list[str] = []
    depth = 0
    begun = at = start + 1
    while at < len(glob):
        char = glob[at]
        if char == "\\":
            at += 1
        elif char == "{":
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        elif char in ",}" and not depth:
            parts.append(glob[begun:at])
            begun = at + 1
            if char == "}":
                return (at + 1, parts) if len(parts) > 1 else None
        at += 1
    return None
