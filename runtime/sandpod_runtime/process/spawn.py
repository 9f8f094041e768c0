"""Starting a program with three pipes, as cheaply as the kernel allows (vfork, no thread, no helper
process).

`os.posix_spawn` cannot change the directory, so the runtime steps into it and out again around the call.
Nothing in the runtime may therefore use a relative path.
"""

import contextlib
import errno
import os
import resource
import signal
from collections.abc import Generator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from sandpod_runtime.strict.world import World

# Python ignores SIGPIPE, and nohup SIGHUP; a program expects to be started with neither ignored.
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
SCRIPT_DESCRIPTOR = 3

# As os.posix_spawn takes them: what the child does with its descriptors before it runs the program.
Action = tuple[int, int, int] | tuple[int, int, str, int, int]


class SpawnError(Exception):
    """The program could not be started; the message is for the caller."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


class Program(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    arguments: list[str]
    environ: dict[str, str]
    directory: str
    script: int | None = None  # an open file that the program finds as descriptor 3


class Child(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    shown_pid: int
    stdin: int | None
    stdout: int
    stderr: int


class Spawner:
    def __init__(self, *, open_files: int | None, world: "World | None" = None) -> None:
        """`open_files` is the soft limit that programs get, when the runtime has raised its own. They live in
        `world`, if there is one.
        """
        self._open_files = open_files
        self._world = world
        self._own_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._devnull = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def start(self, program: Program, *, environ: dict[str, str], with_stdin: bool) -> Child:
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            stdin, our_stdin = self._devnull, None
            try:
                if with_stdin:
                    stdin, our_stdin = _pipe(read_end=theirs, write_end=ours)
                our_stdout, stdout = _pipe(read_end=ours, write_end=theirs)
                our_stderr, stderr = _pipe(read_end=ours, write_end=theirs)
                pid = self._spawn(program, environ=environ, actions=_dup(stdin, stdout, stderr))
            except OSError as error:
                raise _explained(error, program) from error
            for descriptor in (our_stdin, our_stdout, our_stderr):
                if descriptor is not None:
                    os.set_blocking(descriptor, False)
            ours.pop_all()
            return Child(
                pid=pid,
                shown_pid=self.shown_pid(pid),
                stdin=our_stdin,
                stdout=our_stdout,
                stderr=our_stderr,
            )

    def start_on_terminal(self, program: Program, *, environ: dict[str, str], terminal: str) -> int:
        """The child leads a session of its own before its descriptors are made: so the terminal that it opens
        becomes its controlling terminal, and job control works.
        """
        opened = (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0)
        try:
            return self._spawn(program, environ=environ, actions=[opened, *_dup(0, 0, 0)[1:]])
        except OSError as error:
            raise _explained(error, program) from error

    def shown_pid(self, pid: int) -> int:
        """What programs know a child by, which must not have been buried yet."""
        return pid if self._world is None else self._world.number(pid)

    def _spawn(self, program: Program, *, environ: dict[str, str], actions: list[Action]) -> int:
        if program.script is not None:
            actions.append((os.POSIX_SPAWN_DUP2, program.script, SCRIPT_DESCRIPTOR))
        if self._world is None:
            return self._spawn_here(program, environ, actions)
        return self._world.run(lambda: self._spawn_here(program, environ, actions))

    def _spawn_here(self, program: Program, environ: dict[str, str], actions: list[Action]) -> int:
        with _standing_in(program.directory), self._limit_of_open_files():
            return os.posix_spawn(
                program.path,
                program.arguments,
                environ,
                file_actions=actions,
                setsid=True,
                setsigdef=_SIGNALS,
                setsigmask=(),
            )

    @contextlib.contextmanager
    def _limit_of_open_files(self) -> Generator[None]:
        if self._open_files is None:
            yield
            return
        # Some programs close every descriptor they could have: a high limit costs them seconds.
        soft, hard = self._own_limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._open_files, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def _standing_in(directory: str) -> Generator[None]:
    os.chdir(directory)
    try:
        yield
    finally:
        # To stay would keep a file system of the user's busy.
        os.chdir("/")


def _dup(stdin: int, stdout: int, stderr: int) -> list[Action]:
    return [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in enumerate((stdin, stdout, stderr))]


def _pipe(*, read_end: contextlib.ExitStack, write_end: contextlib.ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    read_end.callback(os.close, reader)
    write_end.callback(os.close, writer)
    return reader, writer


def _explained(error: OSError, program: Program) -> SpawnError:
    reason = os.strerror(error.errno or 0)
    if error.errno == errno.E2BIG:
        return SpawnError(
            "the environment is too large: a variable may have 128 KiB, all of them about 2 MiB",
            too_large=True,
        )
    if error.filename == program.directory:
        return SpawnError(f"cannot start in {program.directory}: {reason}")
    if error.filename == program.path:
        return SpawnError(f"cannot run {program.path}: {reason}")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return SpawnError(f"the runtime has no file descriptor left: {reason}")
    return SpawnError(f"cannot start a process: {reason}")
