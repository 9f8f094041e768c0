"""The processes that a sandbox's specification declares: started at the bind, started again when they end,
with pauses that grow, until the sandbox sleeps or somebody kills them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from sandpod_runtime.environment import Environment, merged
from sandpod_runtime.errors import Fault
from sandpod_runtime.models.processes import DeclaredProcess, Restart
from sandpod_runtime.paths import resolved
from sandpod_runtime.process import shell
from sandpod_runtime.process.commands import Commands
from sandpod_runtime.process.records import Processes, Record
from sandpod_runtime.process.spawn import Program, SpawnError

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
# Who lived so long is not in trouble: the next pause is short again.
HEALTHY = 60.0
# The shell's code for a program that could not be run.
_CANNOT_RUN = 126

logger = logging.getLogger(__name__)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """As an event loop has it."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer: ...


class Supervisor:
    """Decides for one process whether and when it runs again."""

    def __init__(
        self, *, restart: Restart, clock: Clock, run: Callable[[], None], over: Callable[[int], None]
    ) -> None:
        """`run` starts it, and its end is told by `ended`; `over` gets the last exit code."""
        self._restart = restart
        self._clock = clock
        self._run = run
        self._over = over
        self._pause = FIRST_PAUSE
        self._begun = 0.0
        self._waiting: Timer | None = None
        self._last_code = 0
        self._stopped = False

    def begin(self) -> None:
        self._waiting = None
        self._begun = self._clock.time()
        self._run()

    def ended(self, exit_code: int) -> None:
        if self._stopped or self._restart == "Never" or (self._restart == "OnFailure" and exit_code == 0):
            self._over(exit_code)
            return
        now = self._clock.time()
        if now - self._begun >= HEALTHY:
            self._pause = FIRST_PAUSE
        self._last_code = exit_code
        self._waiting = self._clock.call_at(now + self._pause, self.begin)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def stop(self) -> None:
        """Never again. What runs goes on until it ends."""
        self._stopped = True
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
            self._over(self._last_code)


class DeclaredProcesses:
    def __init__(self, *, commands: Commands, environment: Environment, processes: Processes) -> None:
        self._commands = commands
        self._environment = environment
        self._processes = processes
        self._supervisors: list[Supervisor] = []

    async def start(self, declared: Iterable[DeclaredProcess]) -> None:
        for process in declared:
            try:
                self._supervise(process)
            except Fault as fault:
                logger.warning("a declared process cannot start", extra={"reason": fault.message})

    async def stop(self) -> None:
        """From now on nothing is started again."""
        for supervisor in self._supervisors:
            supervisor.stop()
        self._supervisors.clear()

    def _supervise(self, process: DeclaredProcess) -> None:
        record = self._processes.add(process_id=process.name, command=process.command, session_id=None)
        record.restarts = -1  # the first start is none
        record.declared = True
        record.port = process.port
        supervisor = Supervisor(
            restart=process.restart,
            clock=asyncio.get_running_loop(),
            run=lambda: self._run(process, record, supervisor),
            over=record.finish,
        )
        record.give_up = supervisor.stop
        self._supervisors.append(supervisor)
        supervisor.begin()

    def _run(self, process: DeclaredProcess, record: Record, supervisor: Supervisor) -> None:
        record.restarts += 1

        def ended(exit_code: int) -> None:
            record.idle()
            logger.info("a declared process ended", extra={"declared": process.name, "exitCode": exit_code})
            supervisor.ended(exit_code)

        try:
            self._launch(process, record)
        except (Fault, SpawnError, shell.NoShellError) as error:
            record.complain(str(error))
            ended(_CANNOT_RUN)
            return
        assert record.running is not None
        record.running.ended.add_done_callback(lambda ending: ended(ending.result().exit_code))

    def _launch(self, process: DeclaredProcess, record: Record) -> None:
        environ = merged(self._environment.variables, process.env)
        with shell.prepared(process.command, search=environ.get("PATH", "")) as line:
            program = Program(
                path=line.path,
                arguments=line.arguments,
                environ=environ,
                directory=resolved(process.cwd or ".", base=self._environment.directory()),
                script=line.script,
            )
            command = self._commands.start(
                program,
                stdin=None,
                stdin_done=lambda: None,
                stdout=record.log.write_stdout,
                stderr=record.log.write_stderr,
                timeout=None,
            )
        record.runs(command)
