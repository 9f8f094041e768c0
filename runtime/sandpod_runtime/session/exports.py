"""Reading what `export -p` prints: bash's declarations, or the plain ones of other shells."""

import os
import re

_LINE = re.compile(rb"^(?:declare -[a-zA-Z]*x[a-zA-Z]*|export) ([A-Za-z_][A-Za-z0-9_]*)(=?)", re.MULTILINE)
_PLAIN = re.compile(rb"[^\s'\"\\$]+")
_DOUBLE = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SINGLE = re.compile(rb"'([^']*)'")
_ANSI = re.compile(rb"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED_IN_DOUBLE = re.compile(rb'\\([$`"\\\n])')
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {
    b"a": b"\a",
    b"b": b"\b",
    b"e": b"\x1b",
    b"E": b"\x1b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


def exported(text: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    # From the end of each value on: a value may hold lines that look like declarations.
    while line := _LINE.search(text, at):
        at = line.end()
        if line[2]:
            value, at = word(text, at)
            found[line[1].decode("ascii")] = os.fsdecode(value)
    return found


def word(text: bytes, at: int) -> tuple[bytes, int]:
    """The word of a shell that begins there, without its quotes, and where it ends."""
    parts: list[bytes] = []
    while at < len(text):
        if match := _PLAIN.match(text, at):
            parts.append(match[0])
        elif match := _DOUBLE.match(text, at):
            parts.append(_ESCAPED_IN_DOUBLE.sub(rb"\1", match[1]))
        elif match := _SINGLE.match(text, at):
            parts.append(match[1])
        elif match := _ANSI.match(text, at):
            parts.append(_ESCAPE.sub(_unescaped, match[1]))
        elif match := _ESCAPED.match(text, at):
            parts.append(match[1])
        elif text[at : at + 1] == b"$":
            parts.append(b"$")
            at += 1
            continue
        else:
            break
        at = match.end()
    return b"".join(parts), at


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 8) & 0xFF])
    if match[2]:
        return bytes([int(match[2], 16)])
    return _LETTERS.get(match[3], match[3])
