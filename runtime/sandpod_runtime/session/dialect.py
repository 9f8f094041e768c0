r"""What a session's shell is told to read: the lines around each command, for bash and for any other shell.

The lines must work whatever a command has done to its shell. Hence their odd looks: a backslash keeps aliases
away, `builtin` functions; redirections are quoted against IFS and forced against noclobber; what tells the
outcome is a bare redirection, which nothing can redefine; `!` calms `set -e`; nothing forks; and bash reads
byte by byte, so that every byte costs a system call.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping

import msgspec

from sandpod_runtime.session import dump


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """A directory, and the one before, as `cd -` knows it."""

    directory: str
    previous: str | None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    # The directory of the FIFOs: o and e for output, x for the report; s… tells the status, n… that the
    # command was not run, because of what is in f; c holds a long command, p… a variable of before.
    place: bytes
    # None when it is in the file.
    command: bytes | None
    variables: Mapping[str, str]
    # Where the command runs, if not where the session is.
    directory: str | None
    home: Where


class Dialect(ABC):
    name: str
    # Whether it takes each line only when it runs it: then an empty pipe without an answer means that it
    # obeys no more.
    reads_ahead: bool
    # Whether a look at its words shows that they still mean what they should.
    proves: bool
    # Commands longer than this are left in a file.
    longest: float
    opening: bytes
    repair: bytes

    @abstractmethod
    def call(self, call: Call) -> bytes:
        """Runs a command and reports."""

    @abstractmethod
    def describe(self, *, number: int, place: bytes) -> bytes:
        """Prints the state of the shell, and reports."""

    @abstractmethod
    def state(self, output: bytes) -> dump.State:
        """What it has printed. Raises dump.NoStateError."""

    @abstractmethod
    def change(self, variables: Mapping[str, str | None]) -> bytes:
        """A variable that is readonly keeps its value."""

    @abstractmethod
    def go(self, where: Where) -> bytes: ...

    def open(self, where: Where) -> bytes:
        """A shell is started where its script lies: its messages begin with the script's plain name."""
        return self.opening + self.go(where) + self.change({} if where.previous else {"OLDPWD": None})


class Bash(Dialect):
    name = "bash"
    reads_ahead = False
    proves = True
    longest = 4096
    opening = b"\\exec 3<&-\n\\builtin shopt -s expand_aliases\n"
    # A function of this name hides every builtin. Only POSIX mode looks for (some) builtins first, and only
    # an assignment leads there without a command. It also sets options, which are put back. `enable -n` can
    # hide them as well.
    repair = (
        b"POSIXLY_CORRECT=y\n"
        b"unset -f builtin\n"
        b"\\builtin unset POSIXLY_CORRECT\n"
        b"\\builtin shopt -s expand_aliases\n"
        b"\\builtin shopt -u inherit_errexit shift_verbose\n"
        b"\\builtin enable . cd declare eval export printf read unset\n"
    )

    def call(self, call: Call) -> bytes:
        run = self._evaluate(call.command, place=call.place)
        conditions: list[bytes] = []
        before = after = b""
        if call.variables:
            names = [name.encode() for name in call.variables]
            # Each for itself: one that is readonly can neither be unset nor be declared again.
            for at, name in enumerate(names):
                file = b"%s/p%d" % (call.place, at)
                before += b"! \\builtin declare -p %s >|%s 2>/dev/null\n" % (name, file)
                after += b"! { \\builtin unset -v %s && \\builtin . %s; }\n" % (name, file)
            # Without what it was, an integer or an array. Variables that stand before `eval` would do for
            # most commands, but what is not exported already would not reach their programs.
            conditions.append(b"\\builtin unset -v " + b" ".join(names))
            conditions.append(b"\\builtin export " + _assigned(call.variables))
        if call.directory is not None:
            conditions.append(b"\\builtin cd -- " + quoted(call.directory))
            after += self.go(call.home)
        if conditions:
            run = _guarded(b" && ".join(conditions), run, call)
        return before + run + _status(call.number, call.place) + after + self._report(call.number, call.place)

    def describe(self, *, number: int, place: bytes) -> bytes:
        dumped = b"\\exec >&- 2>&-\n%s >|%s/o 2>/dev/null\n" % (dump.BASH, place)
        return dumped + _status(number, place) + self._report(number, place)

    def state(self, output: bytes) -> dump.State:
        return dump.of_bash(output)

    def change(self, variables: Mapping[str, str | None]) -> bytes:
        return _changed(variables, b"\\builtin")

    def go(self, where: Where) -> bytes:
        return b"! \\builtin cd -- %s\n" % quoted(where.directory) + _previous(where)

    def _evaluate(self, command: bytes | None, *, place: bytes) -> bytes:
        fetch, text = b"", quoted(command or b"")
        if command is None:
            fetch = b"REPLY=\n! \\builtin read -r -d '' <%s/c\n" % place
            # It rather ends than to take nothing, or what was there before, for the command.
            text = b'"${REPLY:?}"'
        # With the two closed, there is nothing to put aside while they are redirected: descriptors from 10 on
        # stay free for commands. (`builtin exec` would leave its own copies there; a function of the name
        # `exec` does no more harm than that.)
        return b"\\exec >&- 2>&-\n%s\\builtin eval %s >|%s/o 2>|%s/e\n" % (fetch, text, place, place)

    def _report(self, number: int, place: bytes) -> bytes:
        return (
            b"\\exec </dev/null >/dev/null 2>&1\n"
            b"{ \\builtin eval '\\builtin printf \"\\n%d\\n\"'; \\builtin export -p; } >|%s/x\n"
            % (number, place)
        )


class Posix(Dialect):
    """dash, busybox and their like. Special builtins cannot be hidden by functions there; `command` can."""

    name = "sh"
    reads_ahead = True
    proves = False
    longest = math.inf
    opening = b"exec 3<&-\n"
    repair = b""

    def call(self, call: Call) -> bytes:
        # By way of `command`, a syntax error does not end the shell, and the variables do not stay.
        run = b"%s command eval %s </dev/null >|%s/o 2>|%s/e\n" % (
            _assigned(call.variables),
            quoted(call.command or b""),
            call.place,
            call.place,
        )
        after = b""
        if call.directory is not None:
            run = _guarded(b"command cd -- " + quoted(call.directory), run, call)
            after = self.go(call.home)
        return b"".join(
            (b"unset -f command\n", run, _status(call.number, call.place), after, self._report(call.place))
        )

    def describe(self, *, number: int, place: bytes) -> bytes:
        dumped = b"%s </dev/null >|%s/o 2>/dev/null\n" % (dump.POSIX, place)
        return dumped + _status(number, place) + self._report(place)

    def state(self, output: bytes) -> dump.State:
        return dump.of_posix(output)

    def change(self, variables: Mapping[str, str | None]) -> bytes:
        return b"unset -f command\n" + _changed(variables, b"command")

    def go(self, where: Where) -> bytes:
        return b"unset -f command\n! command cd -- %s\n" % quoted(where.directory) + _previous(where)

    def _report(self, place: bytes) -> bytes:
        return b"export -p >|%s/x\n" % place


def _status(number: int, place: bytes) -> bytes:
    return b'>|"%s/s%d.$?"\n' % (place, number)


def _guarded(condition: bytes, run: bytes, call: Call) -> bytes:
    return b"if { %s; } 2>|%s/f; then\n%selse >|%s/n%d; fi\n" % (
        condition,
        call.place,
        run,
        call.place,
        call.number,
    )


def _changed(variables: Mapping[str, str | None], builtin: bytes) -> bytes:
    """First unset, which is refused quietly: to assign to a readonly variable would end a careful shell."""
    lines: list[bytes] = []
    for name, value in variables.items():
        line = b"%s unset -v %s" % (builtin, name.encode())
        if value is not None:
            line += b" && %s export %s" % (builtin, _assigned({name: value}))
        lines.append(b"! { %s; }\n" % line)
    return b"".join(lines)


def _previous(where: Where) -> bytes:
    return b"" if where.previous is None else b"OLDPWD=%s\n" % quoted(where.previous)


def _assigned(variables: Mapping[str, str]) -> bytes:
    return b" ".join(b"%s=%s" % (name.encode(), quoted(value)) for name, value in variables.items())


def quoted(text: str | bytes) -> bytes:
    return b"'" + os.fsencode(text).replace(b"'", b"'\\''") + b"'"
