"""What is known of the processes that clients started: the living, and the last of those that have ended."""

import asyncio
import secrets
import string
import time
from collections.abc import Callable
from typing import Protocol

from sandpod_runtime.budget import Budget
from sandpod_runtime.errors import Fault
from sandpod_runtime.models.processes import Status
from sandpod_runtime.process.command import TIMED_OUT, Command, Ending
from sandpod_runtime.process.logbook import Logbook
from sandpod_runtime.process.pipe import Sink

# How many ended ones are remembered.
KEPT = 512
# All logs together: this part of the budget for bodies and outputs.
_LOGS_PART = 4
# A command may be 100 MB of here-documents: a record shows how it begins.
LONGEST_COMMAND = 8192
_KILLED = (143, 137)
_SUFFIX = string.digits + string.ascii_lowercase


class Record:
    """One process: it may have run several times, when it is declared and was started again."""

    def __init__(self, *, process_id: str, command: str, session_id: str | None, memory: Budget) -> None:
        self.id = process_id
        self.command = command[:LONGEST_COMMAND]
        self.session_id = session_id
        self.started_at = time.time()
        self.ended_at: float | None = None
        self.exit_code: int | None = None
        self.pid: int | None = None
        self.status: Status = "starting"
        self.log = Logbook(memory=memory)
        self.running: Command | None = None
        self.declared = False
        self.restarts = 0
        self.port: int | None = None
        self.killed = False
        # Called when somebody wants it dead, for it may be waiting to be started again.
        self.give_up: Callable[[], None] = lambda: None
        # For waiting use `asyncio.shield`, or one waiter's end would be the end of all waiting.
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        return self.ended.done()

    def on_exit(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Called once, when it is over for good. Returns how not to be called."""

        def call(_: object) -> None:
            callback()

        def leave() -> None:
            self.ended.remove_done_callback(call)

        self.ended.add_done_callback(call)
        return leave

    async def settled(self) -> None:
        """When its program has ended already, until its output and its status are complete."""
        if self.running is not None and self.running.has_exited:
            await asyncio.shield(self.running.ended)
            await asyncio.sleep(0)  # the callbacks of that future come first

    def runs(self, command: Command) -> None:
        self.running = command
        self.pid = command.shown_pid
        self.status = "running"

    def idle(self) -> None:
        """Its program has ended, and it may be started again."""
        self.running = None
        self.pid = None
        self.status = "starting"

    def kill(self) -> None:
        """End it with all that it started, and for good; `ended` follows."""
        if not self.is_over:
            self.killed = True
            self.give_up()
            if self.running is not None:
                self.running.kill()

    def finish(self, exit_code: int, *, error: str = "") -> None:
        """It is over. With `error`, because it could not be started."""
        if error:
            self.complain(error)
        if self.killed and exit_code not in _KILLED:
            # It took the SIGTERM well; for those who wait it was killed all the same.
            exit_code = _KILLED[0]
        self.exit_code = exit_code
        self.ended_at = time.time()
        self.running = None
        if error:
            self.status = "error"
        elif exit_code in _KILLED:
            self.status = "killed"
        else:
            self.status = "failed" if exit_code else "completed"
        self.log.close()
        self.ended.set_result(None)

    def complain(self, line: str) -> None:
        """A line of the runtime's own at the end of stderr."""
        start = "" if self.log.stderr.ends_line else "\n"
        self.log.write_stderr(f"{start}{line}\n".encode())


class Launch(Protocol):
    """Starts the command. Raises Fault, and has then done nothing."""

    def __call__(self, *, stdout: Sink, stderr: Sink) -> Command: ...


class Processes:
    def __init__(self, *, memory: Budget) -> None:
        self._memory = _LogMemory(memory, relieve=self._forget_a_log)
        self._records: dict[str, Record] = {}
        # In the order in which they ended.
        self._ended: dict[str, Record] = {}
        self._with_logs: dict[str, Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def all(self) -> list[Record]:
        return list(self._records.values())

    def living(self) -> list[Record]:
        return [record for record in self._records.values() if not record.is_over]

    def find(self, process_id: str) -> Record:
        if (record := self._records.get(process_id)) is None:
            raise Fault(
                "PROCESS_NOT_FOUND",
                f"process {process_id[:100]}: not found",
                context={"processId": process_id},
                suggestion=f"of those that have ended the last {KEPT} are kept, with their logs",
            )
        return record

    def add(self, *, process_id: str | None, command: str, session_id: str | None) -> Record:
        if process_id in self._records and not self._records[process_id].is_over:
            raise Fault(
                "PROCESS_ERROR",
                f"process {process_id}: there is one with this id, and it runs",
                context={"processId": process_id},
                operation="process.start",
                suggestion="end it first, or take another id",
            )
        process_id = process_id or self._new_id()
        self.forget(process_id)
        record = Record(process_id=process_id, command=command, session_id=session_id, memory=self._memory)
        self._records[process_id] = record
        record.on_exit(lambda: self._keep(record))
        return record

    def start(
        self,
        *,
        process_id: str | None,
        command: str,
        session_id: str | None,
        launch: Launch,
        timeout_note: str = "",
        feed: tuple[Sink, Sink] | None = None,
    ) -> Record:
        """`feed` gets the output as well; it may say that it is full, which holds the process back."""
        record = self.add(process_id=process_id, command=command, session_id=session_id)
        try:
            record.runs(launch(**_sinks(record.log, feed)))
        except Fault as fault:
            if fault.status == 500:
                record.finish(1, error=fault.message)
            else:
                # Refused, not failed: a crowd of these must not push out what is worth keeping.
                self.forget(record.id)
            raise
        assert record.running is not None
        record.running.ended.add_done_callback(lambda ended: _finish(record, ended.result(), timeout_note))
        return record

    def forget(self, process_id: str) -> None:
        if (record := self._records.pop(process_id, None)) is not None:
            self._ended.pop(process_id, None)
            self._with_logs.pop(process_id, None)
            record.log.release()

    def _keep(self, record: Record) -> None:
        if self._records.get(record.id) is not record:
            return
        self._ended[record.id] = record
        self._with_logs[record.id] = record
        if len(self._ended) > KEPT:
            self.forget(next(iter(self._ended)))

    def _forget_a_log(self) -> bool:
        if not self._with_logs:
            return False
        self._with_logs.pop(next(iter(self._with_logs))).log.release()
        return True

    def _new_id(self) -> str:
        suffix = "".join(secrets.choice(_SUFFIX) for _ in range(6))
        return f"proc_{int(time.time() * 1000)}_{suffix}"


def _sinks(log: Logbook, feed: tuple[Sink, Sink] | None) -> dict[str, Sink]:
    if feed is None:
        return {"stdout": log.write_stdout, "stderr": log.write_stderr}
    to_stdout, to_stderr = feed

    def stdout(data: bytes) -> bool:
        log.write_stdout(data)
        return to_stdout(data)

    def stderr(data: bytes) -> bool:
        log.write_stderr(data)
        return to_stderr(data)

    return {"stdout": stdout, "stderr": stderr}


def _finish(record: Record, ending: Ending, timeout_note: str) -> None:
    if ending.timed_out:
        record.complain(timeout_note)
    record.finish(TIMED_OUT if ending.timed_out else ending.exit_code)


class _LogMemory(Budget):
    """A part of the budget: when it is used up, the oldest logs go, and then no log grows."""

    def __init__(self, whole: Budget, *, relieve: Callable[[], bool]) -> None:
        super().__init__(whole.total // _LOGS_PART)
        self._whole = whole
        self._relieve = relieve

    def take(self, count: int) -> bool:
        while not super().take(count):
            if not self._relieve():
                return False
        while not self._whole.take(count):
            if not self._relieve():
                super().give(count)
                return False
        return True

    def give(self, count: int) -> None:
        super().give(count)
        self._whole.give(count)

    def drop(self, count: int) -> None:
        self._whole.drop(count)
