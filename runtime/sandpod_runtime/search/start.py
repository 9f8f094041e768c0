"""How the runtime starts a Python of its own for work that could hang or outgrow one.

A hostile regular expression holds the interpreter's lock until it is done, which is never. In a child it can
be killed. The shipped runtime has neither a `python` on the PATH nor a way to start without its own loader,
so the child is started with the very words that started the runtime.
"""

import sys
from pathlib import Path

from sandpod_runtime.process.spawn import Program

WORKER = "search-worker"


def program(argument: str) -> Program:
    kernel = [word.decode() for word in Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]]
    words = command(kernel=kernel, python=sys.orig_argv, executable=sys.executable, own=len(sys.argv) - 1)
    # Nothing of the user's environment reaches it, and it stands where it keeps nothing busy.
    return Program(path=words[0], arguments=[*words, WORKER, argument], environ={}, directory="/")


def command(*, kernel: list[str], python: list[str], executable: str, own: int) -> list[str]:
    """What to start, without the arguments that are the runtime's own.

    `kernel` are the words of the process, `python` those that the interpreter was given: with a loader in
    front of it, these are fewer.
    """
    loader = kernel[: len(kernel) - len(python)]
    return [*loader, executable, *python[1 : len(python) - own]]
