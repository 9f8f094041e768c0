"""Commands that bash would only pass on: a program and its words. They start without bash, which is most of
the time that a small command takes.

What the program can see of it is exactly what bash would have given it: it replaces itself by the program
of such a command line, after it has set PWD, SHLVL and `_`. Where bash could do anything else, this is
silent, and bash runs.
"""

import os
import re
from collections.abc import Mapping

from sandpod_runtime.process.spawn import Program

_WORDS = re.compile(r"[A-Za-z0-9_./-]+(?:[ \t]+[A-Za-z0-9_./:@%+,=-]+)*")
# Nothing that a shell calls its own, of any version of bash.
_BASHS_OWN = frozenset(
    re.findall(
        r"\S+",
        """
        . : alias bg bind break builtin caller case cd command compgen complete compopt continue coproc
        declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for
        function getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd
        read readarray readonly return select set shift shopt source suspend test then time times trap true
        type typeset ulimit umask unalias unset until wait while
        """,
    )
)
# Without arguments these programs do what bash's own do.
_SAME = frozenset(("true", "false"))
# Variables that make bash do something before, or something else: start-up files, options, functions.
_SWAYING = ("BASH", "ENV", "POSIXLY_CORRECT", "SHELLOPTS", "SSH_CLIENT", "SSH2_CLIENT")
_LEVEL = re.compile("[0-9]{1,2}")


def program(command: str, *, environ: Mapping[str, str], directory: str) -> Program | None:
    """None when bash is needed, or when there is any doubt."""
    line = command.strip(" \t\n")
    if len(line) > 4096 or not _WORDS.fullmatch(line):
        return None
    words = line.split()
    name = words[0]
    if name in _BASHS_OWN and (name not in _SAME or len(words) > 1):
        return None
    if "OLDPWD" in environ and not os.path.isdir(environ["OLDPWD"]):  # noqa: PTH112
        return None  # bash would drop it
    level = environ.get("SHLVL", "0")
    if not _LEVEL.fullmatch(level) or any(variable.startswith(_SWAYING) for variable in environ):
        return None
    path = _found(name, search=environ.get("PATH", ""))
    place = _working_directory(environ.get("PWD"), directory=directory)
    if path is None or place is None:
        return None
    return Program(
        path=path,
        arguments=words,
        environ={**environ, "PWD": place, "SHLVL": str(int(level)), "_": path},
        directory=directory,
    )


def _found(name: str, *, search: str) -> str | None:
    if "/" in name:
        # A relative one begins where the command does, which is not where the runtime is.
        return name if name.startswith("/") and _can_run(name) else None
    for place in search.split(":"):
        if not place.startswith("/"):
            return None
        if _can_run(path := f"{place}/{name}"):
            return path
    return None


def _can_run(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)  # noqa: PTH113 (a Path costs as much again)


def _working_directory(told: str | None, *, directory: str) -> str | None:
    """PWD as bash would set it; None when it would keep what it was told, or there is no such place."""
    try:
        real = os.path.realpath(directory, strict=True)
        if told is not None and told != real and os.path.samefile(told, real):  # noqa: PTH121
            return None
    except OSError:
        return None
    return real
