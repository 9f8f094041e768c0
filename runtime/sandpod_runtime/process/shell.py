"""Which program reads a command line in this image, and how a command reaches it.

An image may have bash, only sh, only busybox, or no shell at all; it may also get one while the sandbox runs.
"""

import os
import shlex
import shutil
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from sandpod_runtime.disk import write_all
from sandpod_runtime.process.spawn import SCRIPT_DESCRIPTOR

# Linux allows 128 KiB for one argument. Longer commands (files written by here-documents) go through a file.
LONGEST_ARGUMENT = 120_000
_SHELL_SYNTAX = frozenset("|&;<>()$`*?[]{}~#\n")


class NoShellError(Exception):
    """The image has no shell and the command needs one, or names no program."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    arguments: list[str]
    script: int | None = None


def find(*, search: str) -> list[str] | None:
    """The shell's path and the arguments that go before -c; None in an image without one."""
    for fixed, name in (("/bin/bash", "bash"), ("/bin/sh", "sh")):
        if os.access(fixed, os.X_OK):
            return [fixed, name]
        if found := shutil.which(name, path=search):
            return [found, name]
    if found := shutil.which("busybox", path=search):
        return [found, "busybox", "sh"]
    return None


def is_bash(found: list[str] | None) -> bool:
    return found is not None and found[1:] == ["bash"]


@contextmanager
def prepared(command: str, *, search: str, prelude: bytes = b"") -> Generator[Line]:
    """What to start so that `command` runs, after a shell has read `prelude`. A file that this needs is open
    while the context lasts.
    """
    shell = find(search=search)
    if shell is None:
        yield _without_shell(command, search=search)
        return
    path, *arguments = shell
    text = os.fsencode(command)
    if len(text) <= LONGEST_ARGUMENT:
        if not prelude:
            yield Line(path=path, arguments=[*arguments, "-c", command])
            return
        # On a line of its own: what the prelude says, also its aliases, counts when that is read.
        line = f". /proc/self/fd/{SCRIPT_DESCRIPTOR}\n{command}"
    else:
        line = f". /proc/self/fd/{SCRIPT_DESCRIPTOR}"
        prelude += text
    with _script(prelude) as script:
        yield Line(path=path, arguments=[*arguments, "-c", line], script=script)


@contextmanager
def _script(text: bytes) -> Generator[int]:
    script = os.memfd_create("command")
    try:
        # The descriptor is closed by the first words of the script itself, before the command can pass it on.
        write_all(script, b"exec %d<&-; " % SCRIPT_DESCRIPTOR + text)
        yield script
    finally:
        os.close(script)


def _without_shell(command: str, *, search: str) -> Line:
    if _SHELL_SYNTAX & set(command):
        raise NoShellError(
            "this image has no shell (bash, sh or busybox): only a program and its words can run"
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise NoShellError(
            f"this image has no shell, and the command is not a list of words: {error}"
        ) from error
    if not words:
        raise NoShellError("this image has no shell, and the command names no program")
    if (path := shutil.which(words[0], path=search)) is None:
        raise NoShellError(f"this image has no shell, and {words[0]} is not a program on its PATH")
    return Line(path=path, arguments=words)
