r"""What a session's shell is told to read: the lines around each command, for bash and for any other shell.

The lines must work whatever a command has done to its shell. Hence their odd looks: a backslash keeps aliases
away, `builtin` functions; redirections are quoted against IFS and forced against noclobber; what tells the
outcome is a bare redirection, which nothing can redefine; nothing forks; and the shell reads byte by byte, so
that every byte costs a system call.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping

from sandpod_runtime.session import dump


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
    def evaluate(self, command: bytes | None, *, variables: Mapping[str, str], place: bytes) -> bytes:
        """None stands for what is left in the file."""

    @abstractmethod
    def describe(self, *, place: bytes) -> bytes:
        """Prints the state of the shell; dump.py reads it."""

    @abstractmethod
    def state(self, output: bytes) -> dump.State:
        """What it has printed. Raises dump.NoStateError."""

    @abstractmethod
    def report(self, number: int, *, place: bytes) -> bytes: ...

    @abstractmethod
    def change(self, variables: Mapping[str, str | None]) -> bytes:
        """A variable that is readonly keeps its value, and even `set -e` does not mind."""

    @abstractmethod
    def enter(self, directory: str, *, then: bytes, number: int, place: bytes) -> bytes:
        """`then` is only read in that directory."""

    @abstractmethod
    def leave(self, directory: str, *, previous: str | None) -> bytes: ...

    def open(self, directory: str, *, previous: str | None) -> bytes:
        """A shell is started where its script lies: its messages begin with the script's plain name."""
        gone = b"! \\unset -v OLDPWD\n" if previous is None else b""
        return self.opening + self.leave(directory, previous=previous) + gone


class Bash(Dialect):
    name = "bash"
    reads_ahead = False
    proves = True
    opening = b"\\exec 3<&-\n\\builtin shopt -s expand_aliases\n"
    # A function of this name hides every builtin. Only POSIX mode looks for (some) builtins first, and only
    # an assignment leads there without a command. It also sets options, which are put back.
    repair = (
        b"POSIXLY_CORRECT=y\n"
        b"unset -f builtin\n"
        b"\\builtin unset POSIXLY_CORRECT\n"
        b"\\builtin shopt -s expand_aliases\n"
        b"\\builtin shopt -u inherit_errexit shift_verbose\n"
    )
    longest = 4096

    def evaluate(self, command: bytes | None, *, variables: Mapping[str, str], place: bytes) -> bytes:
        # With the two closed, there is nothing to put aside while they are redirected: descriptors from 10 on
        # stay free for commands. (`builtin exec` would leave its own copies there; a function of the name
        # `exec` does no more harm than that.) Variables before a builtin last as long as it does.
        fetch, text = b"", quoted(command or b"")
        if command is None:
            fetch = b"REPLY=\n! \\builtin read -r -d '' <%s/c\n" % place
            # It rather ends than to take nothing, or what was there before, for the command.
            text = b'"${REPLY:?}"'
        return b"\\exec >&- 2>&-\n%s%s\\builtin eval %s >|%s/o 2>|%s/e\n" % (
            fetch,
            _assigned(variables),
            text,
            place,
            place,
        )

    def describe(self, *, place: bytes) -> bytes:
        return b"\\exec >&- 2>&-\n%s >|%s/o 2>/dev/null\n" % (dump.BASH, place)

    def state(self, output: bytes) -> dump.State:
        return dump.of_bash(output)

    def report(self, number: int, *, place: bytes) -> bytes:
        return (
            b'>|"%s/s%d.$?"\n'
            b"\\exec </dev/null >/dev/null 2>&1\n"
            b"{ \\builtin printf '\\n%d\\n'; \\builtin export -p; } >|%s/x\n"
        ) % (place, number, number, place)

    def change(self, variables: Mapping[str, str | None]) -> bytes:
        return b"".join(
            b"! \\builtin unset -v %s\n" % name.encode()
            if value is None
            else b"! \\builtin export %s=%s\n" % (name.encode(), quoted(value))
            for name, value in variables.items()
        )

    def enter(self, directory: str, *, then: bytes, number: int, place: bytes) -> bytes:
        return b"if \\builtin cd -- %s 2>|%s/f; then\n%selse >|%s/n%d; fi\n" % (
            quoted(directory),
            place,
            then,
            place,
            number,
        )

    def leave(self, directory: str, *, previous: str | None) -> bytes:
        back = b"! \\builtin cd -- %s\n" % quoted(directory)
        return back if previous is None else back + b"OLDPWD=%s\n" % quoted(previous)


class Posix(Dialect):
    """dash, busybox and their like. Special builtins cannot be hidden by functions there; `command` can."""

    name = "sh"
    reads_ahead = True
    proves = False
    opening = b"exec 3<&-\n"
    repair = b""
    longest = math.inf

    def evaluate(self, command: bytes | None, *, variables: Mapping[str, str], place: bytes) -> bytes:
        # By way of `command`, a syntax error does not end the shell, and the variables do not stay.
        return b"unset -f command\n%scommand eval %s </dev/null >|%s/o 2>|%s/e\n" % (
            _assigned(variables),
            quoted(command or b""),
            place,
            place,
        )

    def describe(self, *, place: bytes) -> bytes:
        return b"%s </dev/null >|%s/o 2>/dev/null\n" % (dump.POSIX, place)

    def state(self, output: bytes) -> dump.State:
        return dump.of_posix(output)

    def report(self, number: int, *, place: bytes) -> bytes:
        return b'>|"%s/s%d.$?"\nexport -p >|%s/x\n' % (place, number, place)

    def change(self, variables: Mapping[str, str | None]) -> bytes:
        return b"unset -f command\n" + b"".join(
            b"! command unset -v %s\n" % name.encode()
            if value is None
            else b"! command export %s=%s\n" % (name.encode(), quoted(value))
            for name, value in variables.items()
        )

    def enter(self, directory: str, *, then: bytes, number: int, place: bytes) -> bytes:
        return b"unset -f command\nif command cd -- %s 2>|%s/f; then\n%selse >|%s/n%d; fi\n" % (
            quoted(directory),
            place,
            then,
            place,
            number,
        )

    def leave(self, directory: str, *, previous: str | None) -> bytes:
        back = b"unset -f command\n! command cd -- %s\n" % quoted(directory)
        return back if previous is None else back + b"OLDPWD=%s\n" % quoted(previous)


def _assigned(variables: Mapping[str, str]) -> bytes:
    return b"".join(b"%s=%s " % (name.encode(), quoted(value)) for name, value in variables.items())


def quoted(text: str | bytes) -> bytes:
    return b"'" + os.fsencode(text).replace(b"'", b"'\\''") + b"'"
